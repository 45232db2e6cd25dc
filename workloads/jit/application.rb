# A web application of METHODS small methods, made here, for Ruby's MJIT: every request calls all of them, again and again, as a
# page of a large application does. It answers requests by itself until MJIT has compiled every method, stops MJIT there, notes how
# that went in FIGURES, and then serves HTTP on 127.0.0.1:PORT until it is ended; with PORT 0 it answers itself for a few seconds.
#
#   ruby3.1 [--mjit] application.rb WAY METHODS PORT FIGURES
#
# WAY is what FIGURES has the figures under. All ways answer the same.
require "json"
require "socket"
require "tmpdir"

WAY, METHODS, PORT, FIGURES = ARGV[0], Integer(ARGV[1]), Integer(ARGV[2]), ARGV[3]

# Calls of a request, whatever the number of methods.
CALLS = 40_000
# Methods of a class, and calls that a page's method makes.
CLASS = 20
PAGE = 12
# MJIT that has compiled nothing for so long has nothing left to compile. A compaction takes as long as all methods did.
QUIET_S = 60
COMPACTION_S = 3600
# With no port, how long all is compiled before the end.
ALONE_S = 5

# What methods do: an attribute, a predicate, a lookup, text, a loop, arithmetic, an error that is met, and nothing at all.
BODIES = [
  "@a = x & 1023\n    @a + %{n}",
  "x.odd? && @flag ? x + %{n} : x ^ %{n}",
  "(@table[x %% 7] || %{n}) + x",
  "\"<li>\#{x & 63}-%{n}</li>\".size + x",
  "s = x\n    @list.each { |item| s += item & %{n} }\n    s",
  "a = x * 3 + %{n}\n    b = a >> 2\n    a > b ? a - b : b - a",
  "begin\n      raise ArgumentError if x & 255 == %{n} & 255\n      x + 1\n    rescue ArgumentError\n      x + 2\n    end",
  "nil.to_i + x"
].freeze

# Always the same numbers, on every machine.
class Numbers
  def initialize = @state = 2018

  def below(bound)
    @state = (@state * 6_364_136_223_846_793_005 + 1_442_695_040_888_963_407) & 0xffff_ffff_ffff_ffff
    (@state >> 33) % bound
  end
end

def leaves(count, numbers)
  (0...count).each_slice(CLASS).map do |slice|
    methods = slice.map do |index|
      body = format(BODIES[numbers.below(BODIES.size)], n: 1 + numbers.below(4000))
      "  def m#{index}(x)\n    #{body}\n  end\n"
    end
    <<~RUBY
      class Part#{slice.first / CLASS}
        def initialize
          @a = 0
          @flag = true
          @list = [3, 5, 8]
          @table = { 0 => 4, 2 => 9, 5 => 1 }
        end
      #{methods.join}
      end
    RUBY
  end
end

# Pages call the methods in an order of their own, as callers do.
def pages(count, numbers)
  order = (0...count).to_a
  (count - 1).downto(1) do |last|
    other = numbers.below(last + 1)
    order[last], order[other] = order[other], order[last]
  end
  order.each_slice(PAGE).with_index.map do |slice, page|
    calls = slice.map { |index| "    x = @part#{index / CLASS}.m#{index}(x) & 0xffff\n" }
    "  def page#{page}(x)\n#{calls.join}    x\n  end\n"
  end
end

def source(count)
  numbers = Numbers.new
  leaf_count = [count - (count + PAGE) / (PAGE + 1) - 1, PAGE].max
  classes = leaves(leaf_count, numbers)
  pages = pages(leaf_count, numbers)
  parts = classes.each_index.map { |index| "    @part#{index} = Part#{index}.new\n" }
  all = pages.each_index.map { |page| "    x = page#{page}(x)\n" }
  rows = [CALLS / leaf_count, 1].max
  [<<~RUBY, leaf_count + pages.size + 1]
    #{classes.join}
    class Application
      def initialize
    #{parts.join}
      end
    #{pages.join}
      def row(x)
    #{all.join}
        x
      end

      def get
        x = 1
        body = +""
        i = 0
        while i < #{rows}
          x = row(x + i)
          body << "<p>" << x.to_s << "</p>\\n"
          i += 1
        end
        body
      end
    end
  RUBY
end

def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

# MJIT says on the standard error output what it does, which is kept apart until all is compiled.
class Log
  def initialize
    @path = File.join(Dir.tmpdir, "masu-mjit-#{$$}.log")
    @before = $stderr.dup
    $stderr.reopen(@path, "w")
    @read = 0
    @ms = []
    @compactions = []
  end

  attr_reader :ms, :compactions, :is_refused

  # Reads what is new; whether there was anything.
  def read
    text = File.binread(@path, nil, @read) || ""
    text = text[0..text.rindex("\n")] if text.include?("\n")
    @read += text.bytesize
    @ms.concat(text.scan(/^JIT success \((\d+\.\d)ms\)/).map { |found,| Float(found) })
    @compactions.concat(text.scan(/^JIT compaction \((\d+\.\d)ms\)/).map { |found,| Float(found) })
    @is_refused ||= text.include?("JIT compaction failure")
    !text.empty?
  end

  def close
    $stderr.reopen(@before)
    File.delete(@path)
  end
end

def median(values) = values.sort[values.size / 2]

# Answers until everything is compiled; what that took.
def warm_up(application, count)
  return { "warm_s" => 0.0, "compiled" => 0 } unless RubyVM::MJIT.enabled?

  log = Log.new
  began = now
  heard = began
  times = []
  loop do
    start = now
    application.get
    times << (now - start) * 1e3
    heard = now if log.read
    is_compiled = log.ms.size >= count
    is_compacted = WAY != "single" || !log.compactions.empty? || log.is_refused
    break if is_compiled && is_compacted
    break if now - heard > (is_compacted ? QUIET_S : COMPACTION_S)
  end
  warm = now - began
  # The queue may still hold methods of Ruby's own library.
  RubyVM::MJIT.pause(wait: true)
  log.read
  log.close
  {
    "warm_s" => warm, "warm_ms" => median(times), "warm_requests" => times.size, "compiled" => log.ms.size,
    "method_ms" => log.ms.empty? ? nil : median(log.ms), "compactions" => log.compactions.size,
    "compaction_ms" => log.compactions.last
  }
end

# What this process has of memory and mappings.
def memory
  kib = ->(name) { File.read("/proc/self/status")[/^#{name}:\s+(\d+)/, 1].to_i }
  maps = File.readlines("/proc/self/maps")
  { "rss_kb" => kib["VmRSS"], "page_tables_kb" => kib["VmPTE"], "mappings" => maps.size,
    "code_mappings" => maps.count { |line| line.split[1].include?("x") } }
end

def serve(application)
  server = TCPServer.new("127.0.0.1", PORT)
  loop do
    connection = server.accept
    connection.setsockopt(Socket::IPPROTO_TCP, Socket::TCP_NODELAY, 1)
    while (request = connection.gets)
      nil until ["\r\n", nil].include?(connection.gets)
      break unless request.start_with?("GET ")

      body = application.get
      connection.write("HTTP/1.1 200 OK\r\nContent-Length: #{body.bytesize}\r\n\r\n#{body}")
    end
  rescue Errno::EPIPE, Errno::ECONNRESET
    # The client has gone.
  ensure
    connection&.close
  end
end

trap("TERM") { exit! 0 }
if %w[own arena].include?(WAY) && !File.read("/proc/self/maps").include?("libmjit")
  abort "#{WAY}: libmjit.so was not preloaded"
end
text, count = source(METHODS)
eval(text, TOPLEVEL_BINDING, "application", 1)
application = Application.new
before = memory
GC.start
figures = warm_up(application, count)
GC.start
after = memory
figures = { "kind" => "start", "way" => WAY, "methods" => METHODS.to_s, "rss_before_kb" => before["rss_kb"] }.merge(figures, after)
File.write(FIGURES, "#{figures.to_json}\n", mode: "a")
if PORT.zero?
  began = now
  application.get while now - began < ALONE_S
else
  serve(application)
end
