// SPDX-License-Identifier: Apache-2.0
// The line of JSON for each request.
#include <gtest/gtest.h>

#include <mutex>

#include "tests/serve/serve_fixture.h"

namespace vitrail::testing {
namespace {

class ServeLog : public ::testing::Test {
 protected:
  // The line of a request.
  json line_of(const std::string& method, const std::string& target, const std::string& body = "",
               const std::string& headers = "") {
    status = http(server.port(), method, target, body, headers).status;
    const std::lock_guard lock(mutex);
    EXPECT_EQ(lines.size(), 1U);
    const json line = json::parse(lines.back());
    lines.clear();
    return line;
  }

  int status = 0;

 private:
  serve::ServeOptions options() {
    serve::ServeOptions options = serve_options();
    options.log = [this](const std::string& line) {
      const std::lock_guard lock(mutex);
      lines.push_back(line);
    };
    return options;
  }

  std::mutex mutex;
  std::vector<std::string> lines;
  TestServer server{options()};
};

TEST_F(ServeLog, ALineHasTheRouteTheStatusTheSizesAndTheTimes) {
  const std::string png = png_of(noise_image(1));
  const json line = line_of("POST", "/v1/classify?top=3", png);
  EXPECT_EQ(status, 200);
  EXPECT_EQ(line["route"], "classify");
  EXPECT_EQ(line["method"], "POST");
  EXPECT_EQ(line["status"], 200);
  EXPECT_EQ(line["request_bytes"], png.size());
  EXPECT_GT(line["response_bytes"], 100);
  EXPECT_GT(line["model_seconds"], 0);
  EXPECT_GE(line["seconds"], line["model_seconds"]);
  EXPECT_FALSE(line.contains("traceparent"));
  EXPECT_FALSE(line.contains("error"));
  EXPECT_EQ(line["model"], "small");
  EXPECT_TRUE(line["client"].get<std::string>().starts_with("127.0.0.1:")) << line;
  EXPECT_EQ(line["time"].get<std::string>().size(), 24U) << line;
  EXPECT_EQ(line_of("POST", "/v1/classify?top=0", png)["status"], 400);
  EXPECT_EQ(line_of("POST", "/v1/embed", png)["route"], "embed");
}

TEST_F(ServeLog, ALineHasTheErrorAndTheRequestsId) {
  const std::string given = "Content-Type: image/png\r\nX-Request-Id: abc-1\r\n";
  const json line = line_of("POST", "/v1/classify", "no image", given);
  EXPECT_EQ(line["status"], 422);
  EXPECT_EQ(line["request_id"], "abc-1");
  EXPECT_TRUE(line["error"].get<std::string>().starts_with("image: expected")) << line;
  const json refused = line_of("GET", "/none");
  EXPECT_EQ(refused["status"], 404) << "before it has a route";
  EXPECT_TRUE(contains(refused["error"].get<std::string>(), "no such route"));
  EXPECT_NE(refused["request_id"], line_of("GET", "/none")["request_id"]);
  EXPECT_NE(line_of("GET", "/none", "", "X-Request-Id: " + std::string(200, 'a') + "\r\n")["request_id"].size(), 200U);
}

// Other text could forge a line or fill the log.
TEST_F(ServeLog, ATraceparentIsLoggedIfItIsOneOfW3c) {
  const std::string valid = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", png = png_of(noise_image(1));
  ASSERT_EQ(valid.size(), 55U);
  const auto logged = [&](const std::string& value) {
    const json line = line_of("POST", "/v1/classify", png, "Traceparent: " + value + "\r\n");
    return line.value("traceparent", "");
  };
  EXPECT_EQ(logged(valid), valid);
  for (const std::string& other : {valid + "0", valid.substr(1), valid + valid, "G" + valid.substr(1),
                                   "\"" + valid.substr(1), "A" + valid.substr(1)}) {
    EXPECT_EQ(logged(other), "") << other;
  }
}

}  // namespace
}  // namespace vitrail::testing
