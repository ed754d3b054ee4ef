"""What other tools of the field need to work with stream tables: each part loads the tool only where it is used."""
