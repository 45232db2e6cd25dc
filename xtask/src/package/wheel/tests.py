import sys, zipfile
with zipfile.ZipFile(sys.argv[1]) as wheel:
    assert wheel.testzip() is None
    record = next(name for name in wheel.namelist() if name.endswith('RECORD'))
    rows = [line.split(',') for line in wheel.read(record).decode().splitlines()]
    assert [row[0] for row in rows] == wheel.namelist(), rows
    program = wheel.infolist()[0]
    assert program.external_attr >> 16 & 0o777 == 0o755, oct(program.external_attr)
    print(rows[0][2], rows[-1][1:], len(rows))