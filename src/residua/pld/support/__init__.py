"""What is known of the support of a PLD without reading its curve."""
