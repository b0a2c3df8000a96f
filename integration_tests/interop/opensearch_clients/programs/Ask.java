// OpenSearch's client for Java with its defaults: the version that it reads, and one streamed prediction.
//
// Arguments: URL, model, key ("" for none).
// Prints the version and the stream, which this client hands on when it has ended; of an error its class and message.

import java.util.Map;

import org.apache.hc.core5.http.Header;
import org.apache.hc.core5.http.HttpHost;
import org.apache.hc.core5.http.message.BasicHeader;
import org.opensearch.client.opensearch.OpenSearchClient;
import org.opensearch.client.opensearch.generic.Requests;
import org.opensearch.client.transport.httpclient5.ApacheHttpClient5TransportBuilder;

public class Ask {
    public static void main(String[] arguments) throws Exception {
        var transport = ApacheHttpClient5TransportBuilder.builder(HttpHost.create(arguments[0]));
        if (!arguments[2].isEmpty()) {
            transport.setDefaultHeaders(new Header[] {new BasicHeader("Authorization", "Bearer " + arguments[2])});
        }
        try (var built = transport.build()) {
            var client = new OpenSearchClient(built);
            System.out.println(client.info().version().number());
            var request = Requests.builder()
                .method("POST")
                .endpoint("/_plugins/_ml/models/" + arguments[1] + "/_predict/stream")
                .query(Map.of("format", "json"))
                .json("{\"parameters\":{\"inputs\":\"hi\"}}")
                .build();
            try (var response = client.generic().execute(request)) {
                System.out.print(response.getBody().orElseThrow().bodyAsString());
            }
        } catch (Exception error) {
            System.out.println(error.getClass().getName() + " " + error.getMessage());
        }
    }
}
