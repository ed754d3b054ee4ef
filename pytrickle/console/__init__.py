"""The console: a web page that shows the graph, histories and watermarks of one database, and changes nothing."""
