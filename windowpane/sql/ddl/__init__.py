"""What CREATE, DROP and ALTER do beyond adding an entry to the catalog."""
