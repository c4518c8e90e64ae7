// SPDX-License-Identifier: Apache-2.0
// Options of serve, and its signals.
#include <csignal>

#include "tests/apps/option_effects.h"
#include "tests/support/http_client.h"
#include "tests/support/serve_process.h"

namespace vitrail::testing {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

std::string image_bytes() { return content_of(noise_folder() / "a.png"); }

HttpReply post_image(uint16_t port, const std::string& headers = "") {
  return http(port, "POST", "/v1/classify", image_bytes(), headers);
}

std::vector<std::string> served(const ServeProcess& server) {
  std::vector<std::string> names;
  const json object = json::parse(http(server.port(), "GET", "/v1/models").body);
  for (const json& model : object["data"]) names.push_back(model["id"]);
  return names;
}

std::string metric(const ServeProcess& server, const std::string& name) {
  for (const std::string& line : lines_of(http(server.port(), "GET", "/metrics").body)) {
    if (line.starts_with(name + " ")) return line.substr(name.size() + 1);
  }
  return "";
}

// A model without a name has that of its folder or file.
void check_names_of_models() {
  const fs::path folder = scratch_folder() / "a=b";
  fs::copy(small_model(), folder);
  const ServeProcess server({"-m", folder.string() + "/", "-m", (folder / "model.safetensors").string()});
  EXPECT_EQ(served(server), (std::vector<std::string>{"a=b", "model"}));
}

void check_model_of_serve() {
  const ServeProcess named({"-m", small_model(), "-m", "other=" + small_model()});
  EXPECT_EQ(served(named), (std::vector<std::string>{"timm_token", "other"}));
  EXPECT_EQ(http(named.port(), "POST", "/v1/classify?model=other", image_bytes()).body, post_image(named.port()).body);
  const ServeProcess bundled({}, {{"VITRAIL_HOME", source("models").parent_path().string()}});
  EXPECT_EQ(served(bundled).at(0), "imagenet-tiny");
  check_names_of_models();
}

void check_host() {
  const ServeProcess server(serve_small({"--host", "127.0.0.2"}));
  EXPECT_TRUE(contains(server.address(), "http://127.0.0.2:")) << server.address();
  EXPECT_NE(run_program({"serve", "--host", "example.org"}).status, 0);
}

void check_port() {
  const ServeProcess first(serve_small());
  const ProgramResult second = run_program({"serve", "--port", std::to_string(first.port()), "-m", small_model()});
  EXPECT_EQ(second.status, 1);
  EXPECT_TRUE(contains(second.err, "in use")) << second.err;
}

void check_unix() {
  const std::string path = (scratch_folder() / "socket").string();
  const ServeProcess server(serve_small({"--unix", path}));
  EXPECT_EQ(server.address(), path);
  HttpConnection connection(path);
  connection.send(http_request("POST", "/v1/classify", image_bytes()));
  EXPECT_EQ(connection.receive().status, 200);
}

void check_api_key_file() {
  const fs::path file = scratch_folder() / "key";
  std::ofstream(file) << "secret\n";
  const ServeProcess server(serve_small({"--api-key-file", file.string()}));
  EXPECT_EQ(post_image(server.port()).status, 401);
  EXPECT_EQ(post_image(server.port(), "Authorization: Bearer secret\r\n").status, 200);
  const ServeProcess by_environment(serve_small(), {{"VITRAIL_API_KEY", "other"}});
  EXPECT_EQ(post_image(by_environment.port()).status, 401);
  EXPECT_EQ(post_image(by_environment.port(), "Authorization: Bearer other\r\n").status, 200);
}

void check_public() {
  const ProgramResult refused = run_program({"serve", "--host", "0.0.0.0", "--port", "0", "-m", small_model()});
  EXPECT_EQ(refused.status, 1);
  EXPECT_TRUE(contains(refused.err, "--public")) << refused.err;
  const ServeProcess server(serve_small({"--host", "0.0.0.0", "--public"}));
  EXPECT_EQ(post_image(server.port()).status, 200);
}

void check_cors() {
  const std::string page = "Origin: https://example.org\r\n";
  const ServeProcess off(serve_small()), on(serve_small({"--cors", "https://example.org"}));
  EXPECT_EQ(post_image(off.port(), page).status, 403);
  EXPECT_EQ(post_image(on.port(), page).status, 200);
}

// Four images in one request.
void post_form(const ServeProcess& server) {
  std::string body;
  for (int i = 0; i < 4; ++i)
    body += "--b\r\nContent-Disposition: form-data; name=\"image\"; filename=\"a\"\r\n\r\n" + image_bytes() + "\r\n";
  const HttpReply reply = http(server.port(), "POST", "/v1/classify", body + "--b--\r\n",
                               "Content-Type: multipart/form-data; boundary=b\r\n");
  EXPECT_EQ(reply.status, 200) << reply.body;
}

void check_batch_of_serve() {
  for (const int batch : {2, 4}) {
    const ServeProcess server(serve_small({"--batch", std::to_string(batch), "--delay", "2000"}));
    post_form(server);
    EXPECT_EQ(metric(server, R"(vitrail_batch_images_count{model="small"})"), std::to_string(4 / batch));
  }
}

void check_delay() {
  const ServeProcess server(serve_small({"--delay", "300"}));
  const HttpReply reply = post_image(server.port());
  const std::string timing = reply.headers.at("server-timing");
  EXPECT_GE(std::stod(timing.substr(timing.find("queue;dur=") + 10)), 295) << timing;
}

size_t threads_of(pid_t pid) {
  size_t count = 0;
  for (const auto& task : fs::directory_iterator("/proc/" + std::to_string(pid) + "/task")) count += task.exists();
  return count;
}

void check_decode_threads() {
  const ServeProcess one(serve_small({"--decode-threads", "1"})), five(serve_small({"--decode-threads", "5"}));
  EXPECT_EQ(threads_of(five.pid()), threads_of(one.pid()) + 2 * 4) << "as many for large and for small images";
}

void check_limit() {
  const ServeProcess server(serve_small({"--limit", "body-bytes=100", "--limit", "headers=1"}));
  EXPECT_EQ(http(server.port(), "GET", "/healthz").status, 200);
  EXPECT_EQ(http(server.port(), "GET", "/healthz", {}, "X: a\r\n").status, 431);
  HttpConnection connection(server.port());
  connection.send("POST /v1/classify HTTP/1.1\r\nContent-Length: 101\r\n\r\n");
  EXPECT_EQ(connection.receive().status, 413);
  for (const char* wrong : {"body-bytes", "body-bytes=", "body-bytes=0", "body-bytes=-1", "body-bytes=1e3", "none=1",
                            "idle-seconds=nan", "idle-seconds=0"}) {
    const ProgramResult result = run_program({"serve", "--port", "0", "-m", small_model(), "--limit", wrong});
    EXPECT_EQ(result.status, 1) << wrong << result.err;
  }
}

void check_model_control() {
  const ServeProcess off(serve_small()), on(serve_small({"--model-control"}));
  const std::string target = "/v2/repository/models/small/unload";
  EXPECT_EQ(http(off.port(), "POST", target, "{}").status, 403);
  EXPECT_EQ(http(on.port(), "POST", target, "{}").status, 200);
  EXPECT_EQ(post_image(on.port()).status, 503);
}

void check_log() {
  ServeProcess server(serve_small({"--log"}));
  const std::string trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  post_image(server.port(), "traceparent: " + trace + "\r\n");
  server.send_signal(SIGTERM);
  EXPECT_EQ(server.wait(), 0);
  const auto lines = json_lines(server.read_output());
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0]["route"], "classify");
  EXPECT_EQ(lines[0]["status"], 200);
  EXPECT_EQ(lines[0]["traceparent"], trace);
}

TEST(ServeSignals, SighupLoadsTheModelsAgainAndSigtermEndsTheServer) {
  const fs::path folder = scratch_folder() / "model";
  fs::copy(small_model(), folder);
  ServeProcess server({"-m", folder.string()});
  const std::string before = post_image(server.port()).body;
  server.send_signal(SIGHUP);
  EXPECT_EQ(post_image(server.port()).body, before);
  fs::remove(folder / "config.json");
  server.send_signal(SIGHUP);
  EXPECT_EQ(post_image(server.port()).body, before) << "a bad model changes nothing";
  server.send_signal(SIGTERM);
  EXPECT_EQ(server.wait(), 0);
}

// Weights that change under the server would give wrong results.
TEST(ServeSignals, AModelFileThatIsCutShortIsAnError) {
  const fs::path folder = scratch_folder() / "model";
  fs::copy(small_model(), folder);
  const ServeProcess server({"-m", folder.string()});
  ASSERT_EQ(post_image(server.port()).status, 200);
  fs::resize_file(folder / "model.safetensors", 100);
  const HttpReply reply = post_image(server.port());
  EXPECT_EQ(reply.status, 503);
  EXPECT_TRUE(contains(reply.body, "a file of a model has changed: reload the models")) << reply.body;
  EXPECT_EQ(http(server.port(), "GET", "/livez").status, 200) << "the server survives";
}

}  // namespace

OptionEffects serve_option_effects() {
  return {{"serve", "-m,--model", check_model_of_serve},
          {"serve", "--host", check_host},
          {"serve", "--port", check_port},
          {"serve", "--unix", check_unix},
          {"serve", "--api-key-file", check_api_key_file},
          {"serve", "--public", check_public},
          {"serve", "--cors", check_cors},
          {"serve", "--batch", check_batch_of_serve},
          {"serve", "--delay", check_delay},
          {"serve", "--decode-threads", check_decode_threads},
          {"serve", "--limit", check_limit},
          {"serve", "--model-control", check_model_control},
          {"serve", "--log", check_log}};
}

}  // namespace vitrail::testing
