"""A service: one process that owns rows, ledgers and keys, and analysts who may only talk to it.

    discreet serve people.toml          the command (`cli/serve.py`)
    app = create_app(settings)          the application (`app.py`), for any ASGI server

The ledger is the only durable state. Keys are one small file. Everything else may be lost at any time.

    settings.py  Settings and Limits: what an owner decides
    keys.py      Key and Keys: who may talk to the service
    desk.py      Desk: one schema, its rows, its ledger, its sessions. The only module that touches rows
    models.py    fits, rules, bounds and synthetic rows as work of a desk
    jobs.py      Job and Jobs: the queue of one table, on one thread
    replies.py   replies kept in the ledger, so that the same request id gets the same bytes
    service.py   Service: the desks and the keys of one process; cookies; what is checked before it starts
    api.py       /v1: the HTTP interface                  problems.py  errors as RFC 9457 problem details
    app.py       create_app: routes, middleware, errors   guard.py     sizes, headers, time grid, access log
    pages.py     the page, if it is there: `router`, an APIRouter that `create_app` includes; its files are in
                 templates/ and static/

What pages build on. `service: Service = request.app.state.service`; `who: Holder` is a dependency that resolves the
holder of a request, from `Authorization: Bearer KEY` or from the cookie `discreet` (`service.cookie(key)` makes its
value, `service.COOKIE` is its name), and raises KeyRefused; a request that changes something and comes with a cookie
must come from the same site. `service.desk(who, name)` is the desk of a table, or NotFound. Every method of a desk
takes the holder first and returns plain dicts and lists, or raises a `discreet.errors` class whose text is for people.
They block: call them with `run_in_threadpool`, or from a `def` route.

    about()  budget(who)  price(who, sql)  ask(who, sql, request=, max_price=)  history(who)  known()
    begin_ask, begin_workload, begin_fit, begin_learn, begin_suggest, begin_synthetic -> Job
    owner:   spending(who)  entries(who)  verify(who)  certificate(who, entry)  report(who)
    service: service.list_keys(who), service.add_key(who, ...), service.revoke_key(who, id)
"""
