"""From algebra to SQL text that PostgreSQL runs."""
