// SPDX-License-Identifier: Apache-2.0
// Batches over clients, overload, departed clients, reloads and metrics.
#include <future>
#include <list>

#include "tests/serve/serve_fixture.h"

namespace vitrail::testing {
namespace {

TEST(ServeBatching, ImagesOfSeveralClientsRunTogether) {
  serve::ServeOptions options = serve_options();
  options.delay_ms = 60'000;  // a full batch does not wait so long
  options.limits.request_seconds = 50;
  options.batch = 4;
  const TestServer server(options);
  std::vector<std::future<std::string>> bodies;
  for (uint64_t i = 0; i < 4; ++i)
    bodies.push_back(std::async(std::launch::async,
                                [&server, i] { return server.post("/v1/classify", png_of(noise_image(i))).body; }));
  const Model model(small_model());
  for (uint64_t i = 0; i < 4; ++i) {
    const json got = json::parse(bodies[i].get());
    const auto want = model.classify(noise_image(i), 1).front();
    EXPECT_EQ(got["predictions"].at(0)["index"], want.index);
    EXPECT_EQ(got["predictions"].at(0)["probability"].get<float>(), want.probability) << "whatever the batch";
  }
  EXPECT_EQ(server.metric("vitrail_batch_images_count"), 1) << "one batch";
  EXPECT_EQ(server.metric(R"(vitrail_batch_images_bucket{le="2"})"), 0);
  EXPECT_EQ(server.metric(R"(vitrail_batch_images_bucket{le="4"})"), 1) << "a bound belongs to its bucket";
  EXPECT_EQ(server.metric("vitrail_batch_images_sum"), 4);
}

TEST(ServeBatching, ALoneRequestDoesNotWait) {
  serve::ServeOptions options = serve_options();
  options.batch = 64;
  const TestServer server(options);
  const HttpReply reply = server.post("/v1/classify", png_of(noise_image(1)));
  EXPECT_EQ(server.metric("vitrail_batch_images_sum"), 1);
  EXPECT_TRUE(contains(reply.headers.at("server-timing"), "queue;dur="));
}

TEST(ServeBatching, OtherOptionsAndModelsAreOtherBatches) {
  serve::ServeOptions options = serve_options();
  options.delay_ms = 100;
  const TestServer server(options);
  std::vector<std::future<int>> statuses;
  for (const char* target : {"/v1/classify", "/v1/embed", "/v1/embed?layer=0", "/v1/embed?model=clip"})
    statuses.push_back(
        std::async(std::launch::async, [&, target] { return server.post(target, png_of(noise_image(1))).status; }));
  for (auto& status : statuses) EXPECT_EQ(status.get(), 200);
  EXPECT_EQ(server.metric("vitrail_batch_images_count"), 4);
}

TEST(ServeBatching, OverloadIsRefusedAtOnce) {
  serve::ServeOptions options = serve_options();
  options.limits.requests = 1;
  options.delay_ms = 5000;  // the first request is in flight when the second arrives
  const TestServer server(options);
  const auto post = [&] { return server.post("/v1/classify", png_of(noise_image(1))); };
  std::future<HttpReply> other = std::async(std::launch::async, post);
  const HttpReply one = post(), two = other.get();
  const HttpReply& refused = one.status == 429 ? one : two;
  EXPECT_EQ(refused.status, 429);
  EXPECT_EQ(one.status + two.status, 200 + 429);
  EXPECT_EQ(refused.headers.at("retry-after"), "1");
  EXPECT_EQ(post().status, 200);
}

TEST(ServeBatching, DepartedClientsAreNotComputedFor) {
  serve::ServeOptions options = serve_options();
  options.delay_ms = 3000;
  const TestServer server(options);
  {
    HttpConnection connection(server.port());
    connection.send(http_request("POST", "/v1/classify", png_of(noise_image(1))));
    wait_until([&] { return server.metric("vitrail_waiting_images") == 1; });
  }
  wait_until([&] { return server.metric("vitrail_departed_requests_total{route=\"classify\"}") == 1; });
  EXPECT_EQ(server.metric("vitrail_batch_images_count"), 0);
}

TEST(ServeBatching, TheTimeLimitOfARequestGives504) {
  serve::ServeOptions options = serve_options();
  options.delay_ms = 60'000;
  options.limits.request_seconds = 1;
  const TestServer server(options);
  EXPECT_EQ(server.post("/v1/classify", png_of(noise_image(1))).status, 504);
  EXPECT_EQ(server.metric(R"(vitrail_requests_total{route="classify",status="504"})"), 1);
  // A text ends the delay of the batch, and is embedded after it.
  EXPECT_EQ(server.post("/v1/embeddings", R"({"model":"clip","input":"a cat"})", kJson).status, 200);
  EXPECT_EQ(server.metric(R"(vitrail_departed_requests_total{route="classify"})"), 0) << "it has its response";
}

TEST(ServeBatching, MetricsCountWhatClientsCount) {
  const TestServer server;
  const Form form({png_of(noise_image(1)), "not an image"});
  for (int i = 0; i < 5; ++i) server.post("/v1/classify", png_of(noise_image(1)));
  server.post("/v1/classify", form.body, form.headers);
  server.post("/v1/classify", "x", "Content-Type: image/png\r\n");
  server.get("/nowhere");
  EXPECT_EQ(server.metric(R"(vitrail_requests_total{route="classify",status="200"})"), 6);
  EXPECT_EQ(server.metric(R"(vitrail_requests_total{route="classify",status="422"})"), 1);
  EXPECT_EQ(server.metric(R"(vitrail_requests_total{route="none",status="404"})"), 1);
  EXPECT_EQ(server.metric(R"(vitrail_images_total{result="success"})"), 6);
  EXPECT_EQ(server.metric(R"(vitrail_images_total{result="error"})"), 2);
  EXPECT_EQ(server.metric("vitrail_ready"), 1);
}

TEST(ServeBatching, DrainUnderLoadCountsWhatClientsReceived) {
  TestServer server;
  const std::string png = png_of(noise_image(1));
  HttpConnection metrics(server.port());  // not idle: it ends after the drain has begun
  metrics.send("GET /metrics HTTP/1.1\r\n");
  std::atomic<int> received{0};
  std::list<HttpConnection> connections;  // all before the drain, which refuses others
  std::vector<std::thread> clients;
  for (int i = 0; i < 4; ++i) {
    clients.emplace_back([&received, &png, &connection = connections.emplace_back(server.port())] {
      while (connection.send(http_request("POST", "/v1/classify", png)) && connection.receive().status == 200)
        ++received;
    });
  }
  wait_until([&] { return received > 20; });
  std::future<bool> drained = std::async(std::launch::async, [&] { return server.drain(); });
  for (std::thread& client : clients) client.join();
  metrics.send("Host: localhost\r\n\r\n");
  const std::string text = metrics.receive().body;
  EXPECT_TRUE(drained.get());
  EXPECT_TRUE(
      contains(text, str(R"(vitrail_requests_total{route="classify",status="200",model="small"} )", received, "\n")))
      << text;
  EXPECT_FALSE(contains(text, "vitrail_departed_requests_total{")) << text;
}

TEST(ServeBatching, KilledClientsAreCountedOnce) {
  const TestServer server;
  const std::string png = png_of(noise_image(1));
  constexpr int kClients = 40;
  int received = 0;
  for (int i = 0; i < kClients; ++i) {
    HttpConnection connection(server.port());
    connection.send(http_request("POST", "/v1/classify", png));
    if (i % 2 == 0) received += connection.receive().status == 200;
  }
  EXPECT_EQ(received, kClients / 2);
  const auto responses = [&] { return server.metric(R"(vitrail_requests_total{route="classify",status="200"})"); };
  const auto departed = [&] { return server.metric(R"(vitrail_departed_requests_total{route="classify"})"); };
  wait_until([&] { return responses() + departed() == kClients; });
  EXPECT_GE(responses(), received);
}

TEST(ServeBatching, AFailedReloadKeepsTheModels) {
  const auto folder = scratch_folder() / "model";
  std::filesystem::copy(small_model(), folder);
  TestServer server({.models = {{"m", folder.string()}}, .port = 0});
  const std::string before = server.post("/v1/classify", png_of(noise_image(1))).body;
  server.load();
  EXPECT_EQ(server.post("/v1/classify", png_of(noise_image(1))).body, before);
  std::filesystem::remove(folder / "config.json");
  error_of([&] { server.load(); });
  EXPECT_EQ(server.post("/v1/classify", png_of(noise_image(1))).body, before);
}

TEST(ServeBatching, ConcurrentMixedRequestsAllHaveTheirResponses) {
  const TestServer server;
  const std::string png = png_of(noise_image(1)), want = server.post("/v1/classify", png).body;
  std::vector<std::thread> clients;
  std::atomic<int> wrong{0};
  for (int client = 0; client < 8; ++client) {
    clients.emplace_back([&, client] {
      HttpConnection connection(server.port());
      for (int i = 0; i < 40; ++i) {
        const bool bad = (i + client) % 5 == 0;
        connection.send(http_request("POST", i % 3 == 0 ? "/v1/embed" : "/v1/classify", bad ? "x" : png,
                                     "Content-Type: image/png\r\n"));
        const HttpReply reply = connection.receive();
        if (reply.status != (bad ? 422 : 200)) ++wrong;
        if (!bad && i % 3 != 0 && reply.body != want) ++wrong;
      }
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(server.post("/v1/classify", png).body, want) << "parity holds afterwards";
}

}  // namespace
}  // namespace vitrail::testing
