"""From decisions to rules on switches, and back: what the switches hold and have counted."""
