"""Backups: one consistent state of a lake and its settings, in a folder elsewhere, and the way back from it.

`snapshot` says of which files a state consists, `archive` keeps the files of many such states once each,
`take` copies what is new, `restore` makes a data directory of one, `check` reads one back.
"""
