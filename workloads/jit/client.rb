# Asks application.rb on 127.0.0.1:PORT so many times, one request after another, and appends the percentiles to FIGURES, in
# milliseconds: of all requests, and of the first 100. WAY and METHODS are what they stand under there.
#
#   ruby3.1 client.rb PORT WAY METHODS REQUESTS FIGURES
require "json"
require "socket"

port, way, methods, requests, figures = Integer(ARGV[0]), ARGV[1], ARGV[2], Integer(ARGV[3]), ARGV[4]

def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

# What it takes to read one answer.
def answer(connection)
  length = 0
  while (line = connection.gets) && line != "\r\n"
    length = Integer(line[/\d+/]) if line.start_with?("Content-Length:")
  end
  connection.read(length)
end

connection = TCPSocket.new("127.0.0.1", port)
connection.setsockopt(Socket::IPPROTO_TCP, Socket::TCP_NODELAY, 1)
body = nil
times = Array.new(requests) do
  start = now
  connection.write("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
  body = answer(connection)
  (now - start) * 1e3
end
abort "no answer" if body.nil? || body.empty?

# As `ab` counts them: so many of a hundred requests took no longer.
percentiles = lambda do |of, end_|
  sorted = of.sort
  [50, 66, 75, 80, 90, 95, 98, 100].to_h do |percent|
    ["p#{percent}#{end_}", sorted[(sorted.size * percent / 100.0).ceil - 1]]
  end
end
line = { "kind" => "requests", "way" => way, "methods" => methods, "requests" => requests }
line.merge!(percentiles.call(times, ""), percentiles.call(times.first(100), "_of_100"))
File.write(figures, "#{line.to_json}\n", mode: "a")
puts body.lines.last
