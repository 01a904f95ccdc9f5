package twinlake.reading;

import java.io.IOException;
import java.io.InputStream;
import java.net.Socket;
import java.net.SocketTimeoutException;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;
import org.apache.hive.service.cli.CLIService;
import org.apache.hive.service.cli.thrift.ThriftBinaryCLIService;
import org.apache.thrift.server.TServer;
import org.apache.thrift.transport.TIOStreamTransport;
import org.apache.thrift.transport.TSocket;
import org.apache.thrift.transport.TTransport;
import org.apache.thrift.transport.TTransportException;
import org.apache.thrift.transport.TTransportFactory;

/**
 * Hive's listener for JDBC, that gives a client so long to log in, and can say whether it is still there.
 *
 * <p>Hive waits for ever for a password, in one of the threads that every connection needs.
 */
final class Clients extends ThriftBinaryCLIService {
  private static final int LOGIN_MS = Integer.getInteger("twinlake.jdbc.login.ms", 10_000);
  private static final ScheduledExecutorService LATE = Executors.newSingleThreadScheduledExecutor(work -> {
    Thread thread = new Thread(work, "logins");
    thread.setDaemon(true);
    return thread;
  });
  private static final ThreadLocal<TSocket> SERVED = new ThreadLocal<>();

  Clients(CLIService service) {
    super(service);
  }

  @Override
  protected void initializeServer() {
    super.initializeServer();
    try {
      TTransportFactory logins = new Logins(
          (TTransportFactory) JdbcServer.get(TServer.class, "inputTransportFactory_", server));
      JdbcServer.set(TServer.class, "inputTransportFactory_", server, logins);
    } catch (ReflectiveOperationException other) {
      throw new NotTested("its Thrift server has no field " + other.getMessage());
    }
  }

  /** Whether the client that this thread serves has closed its connection; it asks for nothing meanwhile. */
  static boolean hasLeft() {
    TSocket served = SERVED.get();
    if (served == null) {
      return false;
    }
    try {
      InputStream read = (InputStream) JdbcServer.get(TIOStreamTransport.class, "inputStream_", served);
      Socket socket = served.getSocket();
      socket.setSoTimeout(1);
      try {
        read.mark(1);
        boolean isOver = read.read() < 0;
        read.reset();
        return isOver;
      } catch (SocketTimeoutException silent) {
        return false;
      } finally {
        socket.setSoTimeout(0);
      }
    } catch (IOException broken) {
      return true;
    } catch (ReflectiveOperationException other) {
      throw new IllegalStateException(other);
    }
  }

  private static final class Logins extends TTransportFactory {
    private final TTransportFactory checked;

    Logins(TTransportFactory checked) {
      this.checked = checked;
    }

    @Override
    public TTransport getTransport(TTransport client) throws TTransportException {
      SERVED.set(client instanceof TSocket socket ? socket : null);
      ScheduledFuture<?> late = LATE.schedule(client::close, LOGIN_MS, TimeUnit.MILLISECONDS);
      try {
        return checked.getTransport(client);
      } finally {
        late.cancel(false);
      }
    }
  }
}
