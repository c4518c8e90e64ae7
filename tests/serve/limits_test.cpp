// SPDX-License-Identifier: Apache-2.0
// Limits of bytes, compressed bodies, rates and the end of a server at their edges, and requests that are much too
// large.
#include <fstream>
#include <future>

#include "tests/serve/serve_fixture.h"
#include "tests/support/deflate.h"
#include "tests/support/serve_process.h"

namespace vitrail::testing {
namespace {

const std::string kGzip = "Content-Encoding: gzip\r\n", kDeflate = "Content-Encoding: deflate\r\n";

// The largest resident size of a process so far.
size_t peak_memory(pid_t pid) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  const std::string key = "VmHWM:";
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(key)) return std::stoul(line.substr(key.size())) << 10;  // in kB
  }
  ADD_FAILURE() << "no " << key;
  return 0;
}

// An image file with zeros behind it, which decoders ignore.
std::string padded_image(size_t size) {
  const std::string image = png_of(noise_image(1));
  return image + std::string(size - image.size(), '\0');
}

TEST(ServeLimits, CompressedBodiesAreLimitedByTheirContent) {
  serve::ServeOptions options = serve_options();
  options.limits.body_bytes = 50'000;
  const TestServer server(options);
  for (const int format : {kGzipFormat, kZlibFormat, kRawFormat}) {
    const std::string& encoding = format == kGzipFormat ? kGzip : kDeflate;
    const auto post = [&](const std::string& body) {
      return server.post("/v1/classify", deflated(body, format), encoding);
    };
    EXPECT_EQ(post(padded_image(50'000)).body, server.post("/v1/classify", padded_image(50'000)).body) << format;
    const HttpReply reply = post(padded_image(50'001));
    EXPECT_EQ(reply.status, 413) << format;
    EXPECT_TRUE(contains(reply.body, "50000")) << reply.body;
    EXPECT_EQ(post(gzipped(padded_image(40'000))).status, 422) << "one layer only";
  }
}

TEST(ServeLimits, DamagedAndUnknownEncodingsAreRefused) {
  const TestServer server;
  const std::string image = png_of(noise_image(1)), body = gzipped(image);
  const auto status = [&](const std::string& data, const std::string& encoding) {
    return server.post("/v1/classify", data, encoding).status;
  };
  for (const int format : {kGzipFormat, kZlibFormat, kRawFormat}) {
    const std::string& encoding = format == kGzipFormat ? kGzip : kDeflate;
    const std::string valid = deflated(image, format);
    EXPECT_EQ(status(valid, encoding), 200) << format;
    EXPECT_EQ(status(valid + "x", encoding), 400) << format;
    EXPECT_EQ(status(valid.substr(0, valid.size() - 9), encoding), 400) << format;
    EXPECT_EQ(status("\xff\xff\xff", encoding), 400) << format;
    if (format == kRawFormat) continue;  // it has no check
    std::string wrong_check = valid;
    wrong_check[valid.size() - (format == kGzipFormat ? 5 : 1)] ^= 1;
    EXPECT_EQ(status(wrong_check, encoding), 400) << format;
  }
  EXPECT_EQ(status("", kDeflate), 400);
  EXPECT_EQ(status(deflated(image, kZlibFormat), kGzip), 400);
  EXPECT_EQ(status(body, kDeflate), 400);
  for (const char* encoding : {"br", "gzip, gzip", "deflate, gzip", "x"})
    EXPECT_EQ(status(body, std::string("Content-Encoding: ") + encoding + "\r\n"), 415) << encoding;
  EXPECT_EQ(status(image, "Content-Encoding: identity\r\n"), 200);
}

// A process of its own, because the client's memory is not of interest.
TEST(ServeLimits, AnEncodedBombTakesNoMemory) {
  const ServeProcess server({"-m", small_model(), "--limit", "body-bytes=1000000"});
  const std::string zeros(size_t{1} << 26, '\0');
  ASSERT_EQ(http(server.port(), "POST", "/v1/classify", png_of(noise_image(1))).status, 200);
  const size_t before = peak_memory(server.pid());
  for (const int format : {kGzipFormat, kZlibFormat}) {
    const std::string bomb = deflated(zeros, format);
    ASSERT_LT(bomb.size(), 1'000'000u);
    const HttpReply reply = http(server.port(), "POST", "/v1/classify", bomb, format == kGzipFormat ? kGzip : kDeflate);
    EXPECT_EQ(reply.status, 413) << reply.body;
  }
  EXPECT_LT(peak_memory(server.pid()), before + (size_t{1} << 25)) << "half of the content";
}

// Texts of 9 to 18 MB, whose values would take more than 200 MB; an eighth of all with a sanitizer, which is slow.
TEST(ServeLimits, TheValuesOfJsonTakeNoMemoryBeyondTheirBudget) {
#ifdef VITRAIL_SANITIZED
  constexpr int kDivisor = 8;
#else
  constexpr int kDivisor = 1;
#endif
  const std::string body_bytes = "body-bytes=" + std::to_string((size_t{64} << 20) / kDivisor);
  const ServeProcess server({"-m", small_model(), "--decode-threads", "4", "--limit", body_bytes});
  const std::string png = png_of(noise_image(1));
  ASSERT_EQ(http(server.port(), "POST", "/v1/classify", png).status, 200);
  [[maybe_unused]] const size_t before = peak_memory(server.pid());
  std::string lists = "[", numbers = "[", keys = "{";
  for (int i = 0; i < 3'000'000 / kDivisor; ++i) lists += "[],";
  for (int i = 0; i < 6'500'000 / kDivisor; ++i) numbers += "0,";
  for (int i = 0; i < 1'800'000 / kDivisor; ++i) keys += '"' + std::to_string(i) + "\":0,";
  for (const std::string& body : {lists + "0]", numbers + "0]", keys + "\"a\":0}"}) {
    std::vector<std::future<HttpReply>> replies;
    for (int i = 0; i < 2; ++i)
      replies.push_back(
          std::async(std::launch::async, [&] { return http(server.port(), "POST", "/v1/classify", body, kJson); }));
    EXPECT_EQ(http(server.port(), "POST", "/v1/classify", png).status, 200);
    for (auto& reply : replies) {
      const HttpReply got = reply.get();
      EXPECT_EQ(got.status, 413) << got.body;
    }
  }
#ifndef VITRAIL_SANITIZED
  EXPECT_LT(peak_memory(server.pid()), before + (size_t{400} << 20));
#endif
}

// Only a figure shows the photograph.
TEST(ServeLimits, MapsOfAttentionKeepNoDecodedImages) {
#ifdef VITRAIL_SANITIZED
  GTEST_SKIP() << "a sanitizer keeps freed memory";
#endif
  const ServeProcess server({"-m", small_model(), "--decode-threads", "1"});
  const image::Image photo = image::make_image(2000, 2000, 3);
  const std::string png = png_of(photo);
  ASSERT_EQ(http(server.port(), "POST", "/v1/attention", png).status, 200);
  const size_t before = peak_memory(server.pid());
  const Form form(std::vector<std::string>(12, png));
  EXPECT_EQ(http(server.port(), "POST", "/v1/attention", form.body, form.headers).status, 200);
  EXPECT_LT(peak_memory(server.pid()), before + 6 * photo.pixels.size()) << "half of the images";
}

TEST(ServeLimits, BytesInFlightOfAllClients) {
  serve::ServeOptions options = serve_options();
  options.limits.buffered_bytes = 20'000;
  const TestServer server(options);
  EXPECT_EQ(server.post("/v1/classify", padded_image(20'000)).status, 200);
  const HttpReply reply = server.post("/v1/classify", padded_image(20'001));
  EXPECT_EQ(reply.status, 429);
  EXPECT_EQ(reply.headers.at("retry-after"), "1");
  {
    const std::string body = padded_image(15'000);
    HttpConnection first(server.port());
    first.send("POST /v1/classify HTTP/1.1\r\nHost: localhost\r\nContent-Length: 15000\r\n\r\n" +
               body.substr(0, 14'999));
    wait_until([&] { return server.post("/v1/classify", padded_image(5'002)).status == 429; });
    EXPECT_EQ(server.post("/v1/classify", padded_image(5'001)).status, 200);
    first.send(body.substr(14'999));
    EXPECT_EQ(first.receive().status, 200) << "who came first is served";
  }
  EXPECT_EQ(server.post("/v1/classify", padded_image(20'000)).status, 200) << "the bytes are free again";
}

TEST(ServeLimits, InflatedBytesCountAsBuffered) {
  serve::ServeOptions options = serve_options();
  options.limits.buffered_bytes = 20'000;
  const TestServer server(options);
  EXPECT_EQ(server.post("/v1/classify", gzipped(padded_image(20'000)), kGzip).status, 200);
  const HttpReply reply = server.post("/v1/classify", gzipped(padded_image(20'001)), kGzip);
  EXPECT_EQ(reply.status, 429);
  EXPECT_EQ(reply.headers.at("retry-after"), "1");
  EXPECT_EQ(server.post("/v1/classify", gzipped(padded_image(20'000)), kGzip).status, 200)
      << "the bytes are free again";
}

TEST(ServeLimits, ADrainEndsAfterItsTimeLimit) {
  serve::ServeOptions options = serve_options();
  options.delay_ms = 60'000;
  options.limits.request_seconds = 120;
  options.limits.exit_seconds = 0.1;
  TestServer server(options);
  HttpConnection connection(server.port());
  connection.send(http_request("POST", "/v1/classify", png_of(noise_image(1))));
  wait_until([&] { return server.metric("vitrail_waiting_images") == 1; });
  EXPECT_FALSE(server.drain());
}

TEST(ServeLimits, ABodyMayBeAsSlowAsTheRate) {
  for (const double rate : {1.0, 1e9}) {
    serve::ServeOptions options = serve_options();
    options.limits.body_grace_seconds = 0.2;
    options.limits.body_bytes_per_second = rate;
    const TestServer server(options);
    const std::string body = padded_image(10'000);
    HttpConnection connection(server.port());
    connection.send("POST /v1/classify HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10000\r\n\r\n" +
                    body.substr(0, 9'000));
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    connection.send(body.substr(9'000));
    EXPECT_EQ(connection.receive().status, rate == 1 ? 200 : 408) << rate;
  }
}

TEST(ServeLimits, TheHeadersBytesAtTheirEdge) {
  serve::ServeOptions options = serve_options();
  options.limits.header_bytes = 1'000;
  const TestServer server(options);
  const auto status = [&](size_t size) {
    const std::string begin = "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: ", end = "\r\n\r\n";
    HttpConnection connection(server.port());
    connection.send(begin + std::string(size - begin.size() - end.size(), 'a') + end);
    return connection.receive().status;
  };
  EXPECT_EQ(status(1'000), 200);
  EXPECT_EQ(status(1'001), 431);
}

TEST(ServeLimits, TheLargestValuesLimitNothing) {
  serve::ServeOptions options = serve_options();
  set_limit(options.limits, "header-bytes", "4294967295");
  set_limit(options.limits, "body-bytes-per-second", "0.001");
  for (const char* name : {"header-seconds", "body-grace-seconds", "idle-seconds", "request-seconds"})
    set_limit(options.limits, name, "1e6");
  const TestServer server(options);
  const std::string request = http_request("POST", "/v1/classify", padded_image(20'000'000));
  HttpConnection connection(server.port());
  connection.send(request.substr(0, request.size() - 1));
  std::this_thread::sleep_for(std::chrono::milliseconds(500));  // it may last 634 years
  connection.send(request.substr(request.size() - 1));
  EXPECT_EQ(connection.receive().status, 200);
}

TEST(ServeLimits, RequestsMuchTooLargeAreRefused) {
  const TestServer server;
  std::string headers;
  for (int i = 0; i < 10'000; ++i) headers += "X: a\r\n";
  EXPECT_EQ(server.get("/healthz").status, 200);
  EXPECT_EQ(http(server.port(), "GET", "/healthz", {}, headers).status, 431) << "10,000 headers";
  HttpConnection endless(server.port());
  bool open = endless.send("GET /healthz HTTP/1.1\r\nX: ");
  for (int i = 0; i < 10'000 && open; ++i) open = endless.send(std::string(100'000, 'a'));
  EXPECT_FALSE(open) << "a header of a gigabyte";
  EXPECT_EQ(server.post("/v1/classify", std::string(100'000, '['), kJson).status, 400) << "nested 100,000 deep";
  json body{{"inputs", {{{"name", "images"}, {"datatype", "BYTES"}, {"shape", {1}}, {"data", {""}}}}}};
  for (int i = 0; i < 100'000; ++i) body["outputs"].push_back({{"name", std::to_string(i)}});
  EXPECT_EQ(server.post("/v2/models/small/infer", body.dump(), kJson).status, 413) << "100,000 outputs";
  const std::string huge =
      "POST /v1/classify HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9223372036854775807\r\n\r\n";
  HttpConnection length(server.port());
  length.send(huge);
  EXPECT_EQ(length.receive().status, 413);
  EXPECT_EQ(server.post("/v1/classify", png_of(noise_image(1))).status, 200) << "the server survives";
}

// The response is awaited before the other chunks are sent, so that it is not lost when the server closes.
TEST(ServeLimits, AMillionChunksAreRefused) {
  const TestServer server;
  const std::string chunk = "1\r\na\r\n";
  std::string chunks;
  for (int i = 0; i < 1'000'000; ++i) chunks += chunk;
  const size_t beyond = (serve::Limits{}.chunks + 1) * chunk.size();
  HttpConnection connection(server.port());
  connection.send("POST /v1/classify HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n");
  connection.send(chunks.substr(0, beyond));
  EXPECT_EQ(connection.receive().status, 413);
  connection.send(chunks.substr(beyond));
  EXPECT_TRUE(connection.closed_within(60));
  EXPECT_EQ(server.post("/v1/classify", png_of(noise_image(1))).status, 200) << "the server survives";
}

TEST(ServeLimits, NumbersInJsonAreIntegersOfTheirRange) {
  const TestServer server;
  const std::string image = R"({"image": "data:image/png;base64,", "top": )";
  for (const char* top : {"-1", "0", "2147483648", "1e308", "1e2", "-0", "1.5", "1e400", "NaN", "{}", "null", "\"\"",
                          "9223372036854775808"})
    EXPECT_EQ(server.post("/v1/classify", image + top + "}", kJson).status, 400) << top;
  for (const char* count : {"-1", "1048577", "1e2", "1.5", "9223372036854775808", "\"3\"", "null"}) {
    const std::string body =
        std::string(R"({"inputs":[{"name":"images","datatype":"BYTES","shape":[1],"data":[""]}],"outputs":[{"name":)") +
        R"("logits","parameters":{"classification":)" + count + "}}]}";
    EXPECT_EQ(server.post("/v2/models/small/infer", body, kJson).status, 400) << count;
  }
}

TEST(ServeLimits, PathsDoNotLeaveThePage) {
  const TestServer server;
  for (const char* target : {"/page/..%2f..%2fetc%2fpasswd", "/page/%2e%2e", "/page/../../etc/passwd",
                             "/page//etc/passwd", "/v2/models/..%2f..%2fsmall", "/page/openapi%00.json"}) {
    const int status = server.get(target).status;
    EXPECT_TRUE(status == 404 || status == 400) << target << status;
  }
  EXPECT_EQ(server.get("/page/main.js").status, 200);
}

}  // namespace
}  // namespace vitrail::testing
