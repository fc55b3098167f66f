"""Gandiva (Xiao et al., OSDI 2018): its mechanisms one by one, and together. Packing is beside other sharing."""
