from windowpane.sql import Session
import pg
s=Session(store=':memory:'); c=pg.connect(); c.execute("create schema if not exists x1; set search_path=x1; drop table if exists t")
for z in (s.run, c.execute): z("CREATE TABLE t (id int primary key, g int, v int)"); z("INSERT INTO t VALUES (1,1,10),(2,1,20),(3,1,20),(4,2,5)")
s.run("FLUSH")
for ex in ("EXCLUDE GROUP","EXCLUDE TIES","EXCLUDE CURRENT ROW"):
  for o in ("", "ORDER BY g", "ORDER BY g, g","ORDER BY g + 0","ORDER BY 1::int", "ORDER BY g NULLS FIRST"):
    for u in ("ROWS","RANGE","GROUPS"):
      if u=="GROUPS" and not o: continue
      for f in ("UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING","UNBOUNDED PRECEDING AND CURRENT ROW","CURRENT ROW AND CURRENT ROW"):
        q=f"SELECT id, sum(v) OVER (PARTITION BY g {o} {u} BETWEEN {f} {ex}) AS s FROM t ORDER BY id"
        e=[[None if x is None else str(x) for x in r] for r in c.execute(q).fetchall()]
        try: a=s.query(q).text_rows()
        except Exception as x: a=str(x)[:80]
        try:
            s.run("CREATE MATERIALIZED VIEW mm AS "+q.replace(" ORDER BY id","")); b=s.query("select * from mm order by id").text_rows(); s.run("DROP MATERIALIZED VIEW mm")
        except Exception as x: b=str(x)[:80]
        if a!=e: print("query",q,e,a)
        if b!=e: print("view",q,e,b)
