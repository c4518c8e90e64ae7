// SPDX-License-Identifier: Apache-2.0
#pragma once
// An HTTP/1.1 client of loopback sockets that sends exactly the bytes it is given.
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace vitrail::testing {

struct HttpReply {
  int status = 0;                              // 0: the connection was closed without a response
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;
};

class HttpConnection {
 public:
  explicit HttpConnection(uint16_t port);
  explicit HttpConnection(const std::string& unix_path);
  ~HttpConnection();
  HttpConnection(const HttpConnection&) = delete;
  HttpConnection& operator=(const HttpConnection&) = delete;

  bool send(std::string_view bytes);  // false: the server closed the connection
  // The next response; has_body false: to HEAD.
  HttpReply receive(bool has_body = true);
  bool closed_within(double seconds);  // whether the server closes the connection
  void close();
  void end_sending();  // closes its sending half

 private:
  bool read_more();

  int socket_ = -1;
  std::string buffer_;
};

// A request with Content-Length; headers: "Name: value\r\n…".
std::string http_request(const std::string& method, const std::string& target, std::string_view body = {},
                         const std::string& headers = "");

// A request on a connection of its own.
HttpReply http(uint16_t port, const std::string& method, const std::string& target, std::string_view body = {},
               const std::string& headers = "");

}  // namespace vitrail::testing
