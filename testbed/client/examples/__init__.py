"""Programs to run as jobs of kind ``external``: what one has to do to be measured, and a check of the workers."""
