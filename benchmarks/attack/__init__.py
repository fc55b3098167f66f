"""Files, expressions and requests made to do harm, thrown at what reads them."""
