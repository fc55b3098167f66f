"""Large models that answer requests: prefill and decode on pools of their own, caches of keys and values sent between.

As in DistServe (Zhong et al., OSDI'24) and Splitwise (Patel et al., ISCA'24): a request waits for a prefill instance,
which makes its first token; the cache goes to a decode instance, which makes the others in batches.
"""
