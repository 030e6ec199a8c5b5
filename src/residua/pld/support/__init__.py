"""The support of a PLD, as far as it is known without reading its curve."""
