// SPDX-License-Identifier: Apache-2.0
#include "tests/support/http_client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <chrono>
#include <stdexcept>

namespace vitrail::testing {
namespace {

constexpr int kPatience = 60'000;  // ms

std::string lower_case(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

}  // namespace

HttpConnection::HttpConnection(uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    throw std::runtime_error("no server on port " + std::to_string(port));
}

HttpConnection::HttpConnection(const std::string& unix_path)
    : socket_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::copy_n(unix_path.begin(), std::min(unix_path.size(), sizeof address.sun_path - 1), address.sun_path);
  if (::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    throw std::runtime_error("no server on " + unix_path);
}

HttpConnection::~HttpConnection() { close(); }

void HttpConnection::close() {
  if (socket_ >= 0) ::close(socket_);
  socket_ = -1;
}

void HttpConnection::end_sending() { ::shutdown(socket_, SHUT_WR); }

bool HttpConnection::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t size = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (size <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(size));
  }
  return true;
}

bool HttpConnection::read_more() {
  pollfd descriptor{.fd = socket_, .events = POLLIN, .revents = 0};
  if (::poll(&descriptor, 1, kPatience) <= 0) throw std::runtime_error("no response within a minute");
  std::array<char, 1 << 16> block{};
  const ssize_t size = ::recv(socket_, block.data(), block.size(), 0);
  if (size > 0) buffer_.append(block.data(), static_cast<size_t>(size));
  return size > 0;
}

bool HttpConnection::closed_within(double seconds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    if (left.count() <= 0) return false;
    pollfd descriptor{.fd = socket_, .events = POLLIN, .revents = 0};
    if (::poll(&descriptor, 1, static_cast<int>(left.count())) > 0 && !read_more()) return true;
  }
}

HttpReply HttpConnection::receive(bool has_body) {
  HttpReply reply;
  size_t end = 0;
  while (true) {  // skips "100 Continue"
    while ((end = buffer_.find("\r\n\r\n")) == buffer_.npos) {
      if (!read_more()) return reply;
    }
    if (!buffer_.starts_with("HTTP/1.1 100")) break;
    buffer_.erase(0, end + 4);
  }
  reply.status = std::stoi(buffer_.substr(9, 3));
  for (size_t at = buffer_.find("\r\n") + 2; at < end;) {
    const size_t line_end = buffer_.find("\r\n", at), colon = buffer_.find(": ", at);
    reply.headers[lower_case(buffer_.substr(at, colon - at))] = buffer_.substr(colon + 2, line_end - colon - 2);
    at = line_end + 2;
  }
  buffer_.erase(0, end + 4);
  const size_t length = has_body ? std::stoul(reply.headers.at("content-length")) : 0;
  while (buffer_.size() < length) {
    if (!read_more()) throw std::runtime_error("a response that was cut");
  }
  reply.body = buffer_.substr(0, length);
  buffer_.erase(0, length);
  return reply;
}

std::string http_request(const std::string& method, const std::string& target, std::string_view body,
                         const std::string& headers) {
  std::string text = method + " " + target + " HTTP/1.1\r\nHost: localhost\r\n" + headers;
  if (!body.empty() || method == "POST") text += "Content-Length: " + std::to_string(body.size()) + "\r\n";
  return text + "\r\n" + std::string(body);
}

HttpReply http(uint16_t port, const std::string& method, const std::string& target, std::string_view body,
               const std::string& headers) {
  HttpConnection connection(port);
  connection.send(http_request(method, target, body, headers));
  return connection.receive(method != "HEAD");
}

}  // namespace vitrail::testing
