package twinlake.lake;

import java.lang.reflect.Field;
import java.net.InetAddress;
import java.util.List;
import java.util.concurrent.TimeUnit;
import javax.net.SocketFactory;
import py4j.CallbackClient;
import py4j.Gateway;
import py4j.GatewayServer;
import py4j.PythonClient;
import py4j.Py4JJavaServer;
import py4j.Py4JPythonClient;

/**
 * How Java calls Python's functions when Python asks for a token.
 *
 * <p>py4j can do that, but PySpark tells Java the port of its functions afterwards, and the copy of the client that
 * py4j makes for the new port has lost the token.
 */
public final class AskedCallbacks extends PythonClient {
  private static final String CLIENT = "cbClient";

  private final String token;

  private AskedCallbacks(Gateway gateway, Py4JJavaServer server, InetAddress address, int port, String token) {
    super(
        gateway, List.of(), port, address, CallbackClient.DEFAULT_MIN_CONNECTION_TIME, TimeUnit.SECONDS,
        SocketFactory.getDefault(), server, true, GatewayServer.DEFAULT_READ_TIMEOUT, token);
    this.token = token;
  }

  /** From now on every call of Python's functions through this server shows the token. */
  public static void use(GatewayServer server, String token) throws ReflectiveOperationException {
    Gateway gateway = server.getGateway();
    Py4JPythonClient before = gateway.getCallbackClient();
    Field client = Gateway.class.getDeclaredField(CLIENT); // py4j has no method that sets it
    client.setAccessible(true);
    client.set(gateway, new AskedCallbacks(gateway, server, before.getAddress(), before.getPort(), token));
    before.shutdown();
  }

  @Override
  public Py4JPythonClient copyWith(InetAddress address, int port) {
    return new AskedCallbacks(gateway, javaServer, address, port, token);
  }
}
