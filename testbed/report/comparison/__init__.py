"""The page that shows runs side by side: of one scenario, of several, or all points of a sweep."""
