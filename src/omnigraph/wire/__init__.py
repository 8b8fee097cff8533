"""The JSON documents of the HTTP API, as structs that server and client share.

`requests` has the request bodies, `documents07` and `documents13` the answers of the two contracts, `errors`
the error body. `contracts` turns results of the engine into the documents of a contract.
"""
