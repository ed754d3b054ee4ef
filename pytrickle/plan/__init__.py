"""From the text of a defining query to one refresh as data; nothing here touches a system."""
