"""sqllogictest files, as RisingWave writes them (sqllogictest-rs), run on a session.

``parser`` reads files into the records of ``records``, ``runner`` runs the records of one file on one session, ``comparison``
says whether rows are those expected, ``taint`` knows what hangs on a refused statement, ``report`` prints. From the command line:
``python -m verify.slt PATH...``.
"""
