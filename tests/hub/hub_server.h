// SPDX-License-Identifier: Apache-2.0
#pragma once
// A server on 127.0.0.1 whose replies a test chooses, for tests of requests to the hub.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/support/paths.h"
#include "vitrail/base/error.h"
#include "vitrail/hub/curl_module_internal.h"
#include "vitrail/hub/settings_internal.h"

namespace vitrail::hub {

struct Request {
  std::string target;
  std::map<std::string, std::string> headers = {};  // names as they were sent
  std::string header(const std::string& name) const { return headers.contains(name) ? headers.at(name) : ""; }
};

struct Reply {
  int status = 200;
  std::string body = {};
  std::vector<std::pair<std::string, std::string>> headers = {};
  std::optional<size_t> length = {};  // Content-Length, if it is not that of the body
};

// Serves one request after the other, and closes the connection after each.
class HubServer {
 public:
  explicit HubServer(std::function<Reply(const Request&)> reply) : reply_(std::move(reply)) {
    socket_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    const bool listens = ::bind(socket_, reinterpret_cast<sockaddr*>(&address), size) == 0 &&
                         ::listen(socket_, 16) == 0 &&
                         ::getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size) == 0;
    if (!listens) throw Error("no socket on 127.0.0.1");
    url_ = str("http://127.0.0.1:", ntohs(address.sin_port));
    thread_ = std::thread([this] { serve(); });
  }
  ~HubServer() {
    ::shutdown(socket_, SHUT_RDWR);
    thread_.join();
    ::close(socket_);
  }
  HubServer(const HubServer&) = delete;
  HubServer& operator=(const HubServer&) = delete;

  const std::string& url() const { return url_; }
  std::vector<Request> requests() const {
    const std::lock_guard lock(mutex_);
    return requests_;
  }

 private:
  void serve() {
    for (;;) {
      const int connection = ::accept(socket_, nullptr, nullptr);
      if (connection < 0) return;
      respond(connection);
      ::close(connection);
    }
  }

  void respond(int connection) {
    std::string text;
    char buffer[4096];
    while (text.find("\r\n\r\n") == text.npos) {
      const ssize_t count = ::recv(connection, buffer, sizeof buffer, 0);
      if (count <= 0) return;
      text.append(buffer, static_cast<size_t>(count));
    }
    Request request{text.substr(4, text.find(' ', 4) - 4)};
    for (size_t at = text.find("\r\n") + 2; text.compare(at, 2, "\r\n") != 0; at = text.find("\r\n", at) + 2) {
      const size_t colon = text.find(": ", at), end = text.find("\r\n", at);
      request.headers[text.substr(at, colon - at)] = text.substr(colon + 2, end - colon - 2);
    }
    {
      const std::lock_guard lock(mutex_);
      requests_.push_back(request);
    }
    const Reply reply = reply_(request);
    std::string out = str("HTTP/1.1 ", reply.status, " x\r\nConnection: close\r\n");
    for (const auto& [name, value] : reply.headers) out += name + ": " + value + "\r\n";
    out += str("Content-Length: ", reply.length.value_or(reply.body.size()), "\r\n\r\n", reply.body);
    for (size_t sent = 0; sent < out.size();) {
      const ssize_t count = ::send(connection, out.data() + sent, out.size() - sent, MSG_NOSIGNAL);
      if (count <= 0) return;
      sent += static_cast<size_t>(count);
    }
  }

  std::function<Reply(const Request&)> reply_;
  int socket_ = -1;
  std::string url_;
  std::thread thread_;
  mutable std::mutex mutex_;
  std::vector<Request> requests_;
};

// Sets environment variables, or unsets those without a value, until it is destroyed.
class Environment {
 public:
  explicit Environment(const std::vector<std::pair<std::string, std::optional<std::string>>>& values) {
    for (const auto& [name, value] : values) {
      const char* const before = std::getenv(name.c_str());
      before_.emplace_back(name, before ? std::optional<std::string>(before) : std::nullopt);
      set(name, value);
    }
  }
  ~Environment() {
    for (auto entry = before_.rbegin(); entry != before_.rend(); ++entry) set(entry->first, entry->second);
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  static void set(const std::string& name, const std::optional<std::string>& value) {
    value ? ::setenv(name.c_str(), value->c_str(), 1) : ::unsetenv(name.c_str());
  }
  std::vector<std::pair<std::string, std::optional<std::string>>> before_;
};

inline Settings settings_for(const std::string& endpoint) {
  Settings settings;
  settings.endpoint = endpoint;
  settings.connect_timeout_s = settings.stall_timeout_s = 1;
  return settings;
}

// Tests that send requests, not through a proxy of the environment.
class HubRequests : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::filesystem::path module = testing::program().parent_path() / kHttpModuleFile;
    if (!std::filesystem::exists(module)) GTEST_SKIP() << "built without libcurl";
  }
  const Environment no_proxy_{{{"no_proxy", "127.0.0.1"}, {"NO_PROXY", "127.0.0.1"}}};
};

}  // namespace vitrail::hub
