import java.io.BufferedReader;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.lucene.index.IndexWriter;
import org.apache.lucene.store.Directory;
import org.apache.lucene.store.FSDirectory;
import org.apache.lucene.store.NoLockFactory;
import org.apache.solr.client.solrj.SolrQuery;
import org.apache.solr.client.solrj.impl.Http2SolrClient;
import org.apache.solr.client.solrj.impl.HttpSolrClient;
import org.apache.solr.client.solrj.request.CollectionAdminRequest;
import org.apache.solr.common.SolrInputDocument;
import org.apache.solr.common.cloud.SolrZkClient;
import org.apache.solr.common.params.ModifiableSolrParams;
import org.apache.solr.core.CoreContainer;
import org.apache.solr.core.SolrCore;
import org.apache.solr.embedded.JettyConfig;
import org.apache.solr.embedded.JettySolrRunner;
import org.apache.solr.request.LocalSolrQueryRequest;
import org.apache.solr.request.SolrQueryRequest;
import org.apache.solr.update.CommitUpdateCommand;
import org.apache.solr.util.RefCounted;
import org.apache.zookeeper.server.ServerCnxnFactory;
import org.apache.zookeeper.server.ZooKeeperServer;

/**
 * SolrCloud in one process: ZooKeeper and its nodes, each at a port of 127.0.0.1, with everything in one folder.
 *
 * <p>An index is made once and handed to every server, because servers that are compared must search the same index,
 * and because making it takes longer than searching it.
 */
public final class SearchNodes {
  private static final String COLLECTION = "masu";
  private static final String USAGE =
      "index CONF FOLDER DOCUMENTS OUT | serve CONF FOLDER INDEX PORT | ask CONF FOLDER INDEX URLS TIMES";

  /** The document's fields in a line of tab-separated text; the first one is the line's number. */
  private static final String[] FIELDS = {"title", "body", "cat", "price"};

  private final Path folder;
  private final String zookeeper;
  private final List<JettySolrRunner> nodes = new ArrayList<>();

  public static void main(String[] words) throws Exception {
    String does = words.length == 0 ? "" : words[0];
    if (does.equals("index") && words.length == 5) {
      index(Path.of(words[1]), Path.of(words[2]), Path.of(words[3]), Path.of(words[4]));
    } else if (does.equals("serve") && words.length == 5) {
      serve(Path.of(words[1]), Path.of(words[2]), Path.of(words[3]), Integer.parseInt(words[4]));
      Thread.currentThread().join();
    } else if (does.equals("ask") && words.length == 6) {
      int port = freePort();
      serve(Path.of(words[1]), Path.of(words[2]), Path.of(words[3]), port);
      ask(Path.of(words[4]), port, Integer.parseInt(words[5]));
    } else {
      System.err.println("Usage: SearchNodes " + USAGE);
      System.exit(2);
    }
    // Threads of Jetty and ZooKeeper go on otherwise.
    System.exit(0);
  }

  /** ZooKeeper with the collection's configuration, and no node yet. */
  private SearchNodes(Path conf, Path folder) throws Exception {
    this.folder = folder.toAbsolutePath();
    Path data = this.folder.resolve("zookeeper");
    Files.createDirectories(data);
    ZooKeeperServer server = new ZooKeeperServer(data.toFile(), data.toFile(), 1000);
    server.setMinSessionTimeout(3_000);
    server.setMaxSessionTimeout(90_000);
    ServerCnxnFactory connections =
        ServerCnxnFactory.createFactory(new InetSocketAddress("127.0.0.1", 0), 200);
    connections.startup(server);
    zookeeper = "127.0.0.1:" + connections.getLocalPort();
    try (SolrZkClient client =
        new SolrZkClient.Builder()
            .withUrl(zookeeper)
            .withTimeout(30_000, TimeUnit.MILLISECONDS)
            .build()) {
      client.upConfig(conf.toAbsolutePath(), COLLECTION);
    }
  }

  /** Starts a node at this port. */
  private void start(int port) throws Exception {
    Path home = folder.resolve("node" + nodes.size());
    Files.createDirectories(home);
    String settings =
        "<solr><str name='coreRootDirectory'>%s</str><solrcloud><str name='host'>127.0.0.1</str>"
            + "<int name='hostPort'>%d</int><str name='hostContext'>solr</str>"
            + "<int name='zkClientTimeout'>30000</int><bool name='genericCoreNodeNames'>true</bool>"
            + "</solrcloud></solr>";
    Files.writeString(home.resolve("solr.xml"), String.format(settings, home, port));
    Properties properties = new Properties();
    properties.setProperty("zkHost", zookeeper);
    properties.setProperty("hostPort", Integer.toString(port));
    System.setProperty("zkHost", zookeeper);
    // Whoever ends the process throws the folder away: there is nothing to be closed in order.
    JettyConfig config =
        JettyConfig.builder().setContext("/solr").setPort(port).stopAtShutdown(false).build();
    JettySolrRunner node = new JettySolrRunner(home.toString(), properties, config);
    node.start();
    nodes.add(node);
  }

  /** Makes the collection: one shard, a replica on every node. */
  private void createCollection(int port) throws Exception {
    String address = "http://127.0.0.1:" + port + "/solr";
    try (Http2SolrClient client = new Http2SolrClient.Builder(address).build()) {
      CollectionAdminRequest.createCollection(COLLECTION, COLLECTION, 1, nodes.size()).process(client);
    }
    CoreContainer container = nodes.get(0).getCoreContainer();
    container
        .getZkController()
        .getZkStateReader()
        .waitForState(
            COLLECTION,
            90,
            TimeUnit.SECONDS,
            (live, state) ->
                state != null
                    && state.getReplicas().size() == nodes.size()
                    && state.getReplicas().stream().allMatch(replica -> replica.isActive(live)));
  }

  /** Makes an index of the documents, as one segment, so that every search of it is the same work. */
  private static void index(Path conf, Path folder, Path documents, Path out) throws Exception {
    int port = freePort();
    SearchNodes cloud = new SearchNodes(conf, folder);
    cloud.start(port);
    cloud.createCollection(port);
    String address = "http://127.0.0.1:" + port + "/solr/" + COLLECTION;
    int count = 0;
    try (HttpSolrClient client = new HttpSolrClient.Builder(address).build();
        BufferedReader lines = Files.newBufferedReader(documents)) {
      List<SolrInputDocument> batch = new ArrayList<>();
      for (String line = lines.readLine(); line != null; line = lines.readLine()) {
        batch.add(document(count++, line));
        if (batch.size() == 1000) {
          client.add(batch);
          batch.clear();
        }
        if (count % 50_000 == 0) {
          System.out.println(count + " documents");
        }
      }
      if (!batch.isEmpty()) {
        client.add(batch);
      }
      client.commit();
      client.optimize(true, true, 1);
      long found = client.query(new SolrQuery("*:*").setRows(0)).getResults().getNumFound();
      if (found != count) {
        throw new IllegalStateException("of " + count + " documents " + found + " are found");
      }
    }
    JettySolrRunner node = cloud.nodes.get(0);
    Path made;
    String name = node.getCoreContainer().getAllCoreNames().iterator().next();
    try (SolrCore core = node.getCoreContainer().getCore(name)) {
      made = Path.of(core.getIndexDir());
    }
    node.stop();
    Files.createDirectories(out);
    try (var files = Files.list(made)) {
      for (Path file : (Iterable<Path>) files::iterator) {
        if (!file.getFileName().toString().equals(IndexWriter.WRITE_LOCK_NAME)) {
          Files.move(file, out.resolve(file.getFileName()));
        }
      }
    }
    System.out.println(count + " documents in " + out);
  }

  private static SolrInputDocument document(int number, String line) {
    String[] values = line.split("\t", -1);
    if (values.length != FIELDS.length) {
      throw new IllegalArgumentException("document " + number + " has " + values.length + " fields");
    }
    SolrInputDocument document = new SolrInputDocument();
    document.addField("id", Integer.toString(number));
    for (int field = 0; field < FIELDS.length; field++) {
      document.addField(FIELDS[field], values[field]);
    }
    return document;
  }

  /** Two nodes with a replica of the index each; the file `ready` in the folder tells when they can be asked. */
  private static void serve(Path conf, Path folder, Path index, int port) throws Exception {
    SearchNodes cloud = new SearchNodes(conf, folder);
    cloud.start(port);
    cloud.start(freePort());
    cloud.createCollection(port);
    for (JettySolrRunner node : cloud.nodes) {
      CoreContainer container = node.getCoreContainer();
      for (String name : container.getAllCoreNames()) {
        try (SolrCore core = container.getCore(name)) {
          adopt(core, index);
        }
      }
    }
    Files.writeString(cloud.folder.resolve("ready"), Integer.toString(port));
    System.out.println("ready at port " + port);
  }

  /** Copies the index into the core, which opens it then. */
  private static void adopt(SolrCore core, Path index) throws Exception {
    RefCounted<IndexWriter> writer = core.getSolrCoreState().getIndexWriter(core);
    // Without a lock, as nobody writes there and several servers may read.
    try (Directory from = FSDirectory.open(index.toAbsolutePath(), NoLockFactory.INSTANCE)) {
      writer.get().addIndexes(from);
    } finally {
      writer.decref();
    }
    try (SolrQueryRequest request = new LocalSolrQueryRequest(core, new ModifiableSolrParams())) {
      core.getUpdateHandler().commit(new CommitUpdateCommand(request, false));
    }
  }

  /** Asks so many of the URLs, eight at a time: what a look at a whole run of the server needs. */
  private static void ask(Path urls, int port, int times) throws Exception {
    List<String> lines = Files.readAllLines(urls);
    HttpClient client = HttpClient.newHttpClient();
    AtomicInteger next = new AtomicInteger();
    AtomicInteger failures = new AtomicInteger();
    List<Thread> threads = new ArrayList<>();
    for (int number = 0; number < 8; number++) {
      Thread thread =
          new Thread(
              () -> {
                for (int at = next.getAndIncrement(); at < times; at = next.getAndIncrement()) {
                  String url = lines.get(at % lines.size()).replace("{port}", Integer.toString(port));
                  HttpRequest request = HttpRequest.newBuilder(URI.create(url)).build();
                  try {
                    if (client.send(request, BodyHandlers.discarding()).statusCode() >= 400) {
                      failures.incrementAndGet();
                    }
                  } catch (Exception error) {
                    failures.incrementAndGet();
                  }
                }
              });
      thread.start();
      threads.add(thread);
    }
    for (Thread thread : threads) {
      thread.join();
    }
    if (failures.get() > 0) {
      throw new IllegalStateException("of " + times + " queries " + failures.get() + " failed");
    }
    System.out.println(times + " queries answered");
  }

  private static int freePort() throws Exception {
    try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
      return socket.getLocalPort();
    }
  }
}
