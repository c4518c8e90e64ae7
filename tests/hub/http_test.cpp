// SPDX-License-Identifier: Apache-2.0
#include "vitrail/hub/http_internal.h"

#include <gtest/gtest.h>

#include <chrono>

#include "tests/hub/hub_server.h"
#include "tests/support/errors.h"
#include "tests/support/messages.h"
#include "vitrail/hub/download_internal.h"

namespace vitrail::hub {
namespace {

using testing::contains;
using testing::error_of;
constexpr size_t kManyBytes = 1 << 20;

TEST(OriginOf, IsTheServerOfAUrl) {
  const std::pair<const char*, const char*> cases[] = {{"https://h.co/a/b", "https://h.co"},
                                                       {"https://h.co", "https://h.co"},
                                                       {"http://h:80?x=/", "http://h:80"},
                                                       {"https://h#/x", "https://h"},
                                                       {"/a", ""}};
  for (const auto& [url, origin] : cases) EXPECT_EQ(origin_of(url), origin) << url;
}

TEST_F(HubRequests, GetGivesStatusHeadersAndBody) {
  const HubServer server([](const Request&) {
    return Reply{201, "text", {{"X-Mixed-Case", "  v w\t"}, {"Empty", ""}}};
  });
  HttpClient client(settings_for(server.url()));
  const HttpResponse response = client.get(server.url() + "/a?b=c", kManyBytes);
  EXPECT_EQ(response.status, 201);
  EXPECT_EQ(response.body, "text");
  EXPECT_EQ(response.header("x-mixed-case"), "v w");
  EXPECT_EQ(response.header("empty"), "");
  EXPECT_EQ(response.header("absent"), "");
  EXPECT_EQ(response.result, HttpResult::complete);
  ASSERT_EQ(server.requests().size(), 1u);
  EXPECT_EQ(server.requests()[0].target, "/a?b=c");
  EXPECT_EQ(server.requests()[0].header("Accept-Encoding"), "identity");
  EXPECT_EQ(server.requests()[0].header("Authorization"), "");
}

TEST_F(HubRequests, TheTokenGoesToTheEndpointAlone) {
  const HubServer storage([](const Request&) { return Reply{200, "content"}; });
  const HubServer hub([&](const Request& request) {
    if (request.target == "/near") return Reply{307, "", {{"Location", "/far"}}};
    return Reply{302, "", {{"Location", storage.url() + "/x"}}};
  });
  Settings settings = settings_for(hub.url());
  settings.token = "hf_t";
  HttpClient client(settings);
  EXPECT_EQ(client.get(hub.url() + "/near", kManyBytes).body, "content");
  ASSERT_EQ(hub.requests().size(), 2u);
  EXPECT_EQ(hub.requests()[1].target, "/far");
  for (const Request& request : hub.requests()) EXPECT_EQ(request.header("Authorization"), "Bearer hf_t");
  ASSERT_EQ(storage.requests().size(), 1u);
  EXPECT_EQ(storage.requests()[0].header("Authorization"), "");
}

TEST_F(HubRequests, TheEndpointsUserGoesToItAloneAndIntoNoMessage) {
  const HubServer storage([](const Request&) { return Reply{404, ""}; });
  const HubServer hub([&](const Request&) { return Reply{302, "", {{"Location", storage.url() + "/x"}}}; });
  std::string endpoint = hub.url();
  endpoint.insert(endpoint.find("//") + 2, "me:secret@");
  const Environment environment({{"HF_ENDPOINT", endpoint}, {"HF_TOKEN", "hf_t"}});
  HttpClient client(settings_from_environment());
  EXPECT_EQ(client.settings().endpoint, hub.url());
  EXPECT_EQ(client.get(client.settings().endpoint, 10).status, 404);
  EXPECT_EQ(hub.requests().at(0).header("Authorization"), "Basic bWU6c2VjcmV0") << "a request has one";
  EXPECT_EQ(storage.requests().at(0).header("Authorization"), "");
  const std::string message =
      error_of([&] { throw_hub_error({.status = 404}, client.settings(), "org/name", "org/name"); });
  EXPECT_FALSE(contains(message, "secret")) << message;
}

TEST_F(HubRequests, RedirectionsElsewhereAndWithoutEndAreErrors) {
  std::string location;
  const HubServer server([&](const Request&) { return Reply{301, "", {{"Location", location}}}; });
  HttpClient client(settings_for(server.url()));
  for (const std::string to : {"", "ftp://x/y", "file:///etc/passwd", "relative", "http://a b/"}) {
    location = to;
    EXPECT_TRUE(contains(error_of([&] { client.get(server.url(), 10); }), "a redirection to a URL with https://"))
        << to;
  }
  const size_t before = server.requests().size();
  location = "/again";
  EXPECT_TRUE(contains(error_of([&] { client.get(server.url(), 10); }), "at most 10 redirections"));
  EXPECT_EQ(server.requests().size() - before, 10u);
}

TEST_F(HubRequests, ALocationBesideTheSchemeKeepsIt) {
  std::string location;
  const HubServer server([&](const Request& request) {
    return request.target == "/end" ? Reply{200, "there"} : Reply{308, "", {{"Location", location}}};
  });
  location = server.url().substr(5) + "/end";  // "//127.0.0.1:PORT/end"
  HttpClient client(settings_for(server.url()));
  EXPECT_EQ(client.get(server.url() + "/begin", 10).body, "there");
}

TEST_F(HubRequests, WhatIsNoRedirectionIsGiven) {
  for (const int status : {200, 204, 206, 300, 304, 309, 400, 401, 403, 404, 416, 499}) {
    const HubServer server([&](const Request&) { return Reply{status, "", {{"Location", "/x"}}}; });
    HttpClient client(settings_for(server.url()));
    EXPECT_EQ(client.get(server.url(), 10).status, status);
    EXPECT_EQ(server.requests().size(), 1u) << status << " is not tried again";
  }
}

TEST_F(HubRequests, TemporaryFailuresAreTriedAgain) {
  for (const int status : {408, 500, 599}) {
    int replies = 0;
    const HubServer server([&](const Request&) { return ++replies == 1 ? Reply{status} : Reply{200, "ok"}; });
    HttpClient client(settings_for(server.url()));
    EXPECT_EQ(client.get(server.url(), 10).body, "ok") << status;
    EXPECT_EQ(server.requests().size(), 2u);
  }
}

TEST_F(HubRequests, ATryWaitsAsLongAsTheServerAsks) {
  int replies = 0;
  const HubServer server([&](const Request&) {
    return ++replies == 1 ? Reply{429, "", {{"Retry-After", "1"}}} : Reply{200};
  });
  HttpClient client(settings_for(server.url()));
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(client.get(server.url(), 10).status, 200);
  EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(990));
}

TEST_F(HubRequests, ABodyOfTheLimitIsReadAndALongerOneIsAnError) {
  const HubServer server([](const Request&) { return Reply{200, std::string(100, 'x')}; });
  HttpClient client(settings_for(server.url()));
  EXPECT_EQ(client.get(server.url(), 100).body.size(), 100u);
  EXPECT_TRUE(contains(error_of([&] { client.get(server.url(), 99); }), "expected at most 99 bytes, got more"));
}

TEST_F(HubRequests, ABodyThatIsCutIsReadAgainFromItsBeginning) {
  int replies = 0;
  const HubServer server([&](const Request&) { return ++replies == 1 ? Reply{200, "ab", {}, 4} : Reply{200, "abcd"}; });
  HttpClient client(settings_for(server.url()));
  EXPECT_EQ(client.get(server.url(), 4).body, "abcd");
}

// The sink has only the content of successes; the text of an error is short.
TEST_F(HubRequests, TheTextOfAnErrorIsNoContent) {
  const HubServer server([](const Request&) { return Reply{404, std::string(10'000, 'e')}; });
  HttpClient client(settings_for(server.url()));
  bool called = false;
  const HttpResponse response = client.get(server.url(), {}, [&](const HttpResponse&, std::string_view) {
    called = true;
    return true;
  });
  EXPECT_FALSE(called);
  EXPECT_EQ(response.status, 404);
  EXPECT_EQ(response.body, std::string(4096, 'e'));
}

TEST_F(HubRequests, ASinkMayStopTheTransferOrThrow) {
  const HubServer server([](const Request&) { return Reply{200, "content"}; });
  HttpClient client(settings_for(server.url()));
  const HttpResponse stopped =
      client.get(server.url(), {}, [](const HttpResponse&, std::string_view) { return false; });
  EXPECT_EQ(stopped.result, HttpResult::stopped);
  EXPECT_EQ(error_of([&] {
              client.get(server.url(), {}, [](const HttpResponse&, std::string_view) -> bool { throw Error("sink"); });
            }),
            "sink");
  EXPECT_EQ(client.get(server.url(), 10).body, "content") << "the client works on";
}

TEST_F(HubRequests, HeadersOfTheCallerAreSent) {
  const HubServer server([](const Request&) { return Reply{200}; });
  HttpClient client(settings_for(server.url()));
  client.get(server.url(), {"Range: bytes=3-"}, [](const HttpResponse&, std::string_view) { return true; });
  EXPECT_EQ(server.requests().at(0).header("Range"), "bytes=3-");
}

TEST_F(HubRequests, RefusalsNameTheUrlAndTheLocation) {
  std::string location = "/again";
  const HubServer server([&](const Request&) { return Reply{302, "", {{"Location", location}}}; });
  HttpClient client(settings_for(server.url()));
  const std::string url = server.url() + "/a";
  EXPECT_ERROR(error_of([&] { client.get(url, 10); }), server.url() + "/again", "more");
  location = "ftp://x";
  EXPECT_ERROR(error_of([&] { client.get(url, 10); }), url, "\"ftp://x\"");
  location = std::string(201, 'x');
  EXPECT_ERROR(error_of([&] { client.get(url, 10); }), url, "\"" + std::string(200, 'x') + "\"");
}

TEST_F(HubRequests, NineRedirectionsAreFollowedToTheEnd) {
  const HubServer server([](const Request& request) {
    const int number = std::stoi(request.target.substr(1));
    return number == 9 ? Reply{200, "end"} : Reply{303, "", {{"Location", "/" + std::to_string(number + 1)}}};
  });
  HttpClient client(settings_for(server.url()));
  EXPECT_EQ(client.get(server.url() + "/0", 10).body, "end");
  EXPECT_EQ(server.requests().size(), 10u);
}

TEST_F(HubRequests, SayWhoTheyAre) {
  const HubServer server([](const Request&) { return Reply{200}; });
  Settings settings = settings_for(server.url() + "/path");
  settings.token = "hf_t";
  HttpClient client(settings);
  client.get(server.url() + "/x", 10);
  const Request request = server.requests().at(0);
  EXPECT_EQ(request.header("User-Agent"), "vitrail");
  EXPECT_EQ(request.header("Accept-Encoding"), "identity");
  EXPECT_EQ(request.header("Authorization"), "Bearer hf_t") << "the endpoint's server, whatever its path is";
  EXPECT_EQ(client.settings().endpoint, server.url() + "/path");
}

TEST_F(HubRequests, ATransferThatIsCutGivesWhatCame) {
  const HubServer server([](const Request&) { return Reply{200, "abc", {{"ETag", "t"}}, 9}; });
  HttpClient client(settings_for(server.url()));
  std::string got;
  const HttpResponse response = client.get(server.url(), {}, [&](const HttpResponse& head, std::string_view data) {
    EXPECT_EQ(head.status, 200);
    EXPECT_EQ(head.header("etag"), "t");
    got += data;
    return true;
  });
  EXPECT_EQ(got, "abc");
  EXPECT_EQ(response.result, HttpResult::cut);
  EXPECT_NE(response.message, "");
  EXPECT_EQ(response.body, "");
  EXPECT_EQ(server.requests().size(), 1u);
}

TEST_F(HubRequests, OfManyHeadersTheFirstAreKept) {
  const HubServer server([](const Request&) {
    Reply reply{200};
    for (int i = 0; i < 250; ++i) reply.headers.emplace_back("H" + std::to_string(i), std::to_string(i));
    return reply;
  });
  HttpClient client(settings_for(server.url()));
  const HttpResponse response = client.get(server.url(), 10);
  EXPECT_EQ(response.headers.size(), 200u);
  EXPECT_EQ(response.header("h0"), "0");
  EXPECT_EQ(response.header("h198"), "198") << "behind \"Connection\"";
  EXPECT_EQ(response.header("h199"), "");
}

// The headers and the text of a redirection are not those of the last response.
TEST_F(HubRequests, ARedirectionLeavesNothingBehind) {
  const HubServer server([](const Request& request) {
    return request.target == "/end" ? Reply{404, "last"}
                                    : Reply{302, "first", {{"Location", "/end"}, {"X-Error-Code", "Early"}}};
  });
  HttpClient client(settings_for(server.url()));
  const HttpResponse response = client.get(server.url() + "/begin", 100);
  EXPECT_EQ(response.status, 404);
  EXPECT_EQ(response.body, "last");
  EXPECT_EQ(response.header("x-error-code"), "");
  EXPECT_EQ(response.header("location"), "");
}

}  // namespace
}  // namespace vitrail::hub
