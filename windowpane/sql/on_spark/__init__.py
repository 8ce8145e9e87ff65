"""Materialized views as Structured Streaming queries.

A view whose plan ``streamed_plan`` knows reads its source itself and is one query, see ``streamed_query``.
To every other view a flush sends a letter, and the view's query answers it.

A letter is a file in the inbox of a view: the changes of the relations it reads, and the watermarks of that moment. The query
takes one letter a batch, and what comes of it is written to the store together with the number of the batch.
"""
