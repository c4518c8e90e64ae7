// SPDX-License-Identifier: Apache-2.0
#pragma once
// A connection of the HTTP module.  Only the module includes this.
#include <array>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <set>

#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>

#include "vitrail/serve/http_internal.h"

namespace vitrail::serve {

class HttpSession;
using Socket = boost::asio::generic::stream_protocol::socket;

// What the connections of a transport share.  All but `io`, the mutex and what it protects belongs to the thread of the
// transport.
struct HttpCore : std::enable_shared_from_this<HttpCore> {
  HttpCore(const Limits& limits_in, HttpHandler& handler_in) : limits(limits_in), handler(handler_in) {}

  boost::asio::io_context io{1};
  Limits limits;
  HttpHandler& handler;
  bool draining = false;
  std::set<HttpSession*> sessions;
  size_t requests = 0, buffered_bytes = 0;  // in flight
  uint64_t clients = 0;                     // so far
  std::mutex mutex;
  std::condition_variable closed;
  size_t connections = 0;  // under the mutex: the size of `sessions`

  void add(HttpSession* session);
  void remove(HttpSession* session);
  // Closes the connection that has been without a complete request for longest, if there is one.
  void close_longest_waiting();
};

// What a session tells the exchange of a request.
struct RequestState {
  std::atomic<bool> departed{false}, timed_out{false};
};

// Reads requests one after another and writes their responses in the same order.  Lives as long as an operation of its
// socket or timer is pending.
class HttpSession : public std::enable_shared_from_this<HttpSession> {
 public:
  HttpSession(HttpCore& core, Socket socket);
  ~HttpSession();
  HttpSession(const HttpSession&) = delete;
  HttpSession& operator=(const HttpSession&) = delete;

  void start() { read_header(); }
  // Sends the response to the request of this number, unless it has one.
  void respond(uint64_t request, HttpResponse response);
  void close();
  void close_if_idle() {
    if (idle_) close();
  }
  // Since when it has neither a request nor a response to write; none: it has.
  std::optional<std::chrono::steady_clock::time_point> waiting_since() const {
    return in_flight_ || response_ ? std::nullopt : std::optional(waiting_since_);
  }

 private:
  using Parser = boost::beast::http::request_parser<boost::beast::http::buffer_body>;
  using ErrorCode = boost::beast::error_code;

  void read_header();
  void read_more_header();
  void on_header_bytes(ErrorCode error);
  void skip_empty_lines();
  void parse_header();
  void on_header();
  // What Beast accepts and a proxy might read in another way, or RFC 9112 forbids; empty: nothing.
  std::string header_fault() const;
  void copy_head();
  void continue_and_read_body();
  void read_body();
  void on_body_bytes(ErrorCode error);
  void dispatch();
  void watch_for_departure();
  void begin_response();
  void refuse(int status, const std::string& message);
  void on_failed_read(ErrorCode error);
  void send(HttpResponse response);
  void on_sent(ErrorCode error);
  void discard_input();
  void end_request();
  void set_deadline(double seconds);

  HttpCore& core_;
  const uint64_t client_ = ++core_.clients;
  std::string address_;  // the client's
  Socket socket_;
  boost::asio::steady_timer timer_;
  boost::beast::flat_buffer buffer_;
  std::optional<Parser> parser_;
  std::array<char, 1 << 16> block_;  // a piece of a body
  HttpRequest request_;
  std::function<void(std::uint64_t, boost::beast::string_view, ErrorCode&)> count_chunk_;
  size_t header_bytes_ = 0, chunks_ = 0, buffered_ = 0, discarded_ = 0;
  size_t begun_ = 0;  // bytes of the response that begin_response() has written
  std::chrono::steady_clock::time_point body_begin_, waiting_since_ = std::chrono::steady_clock::now();
  uint64_t number_ = 0;                  // counts the requests
  std::shared_ptr<RequestState> state_;  // belongs to the current request
  std::shared_ptr<void> response_;       // while it is written
  bool idle_ = true, in_flight_ = false, has_response_ = false, keep_alive_ = false, timed_out_ = false,
       closed_ = false, beyond_limit_ = false;
};

}  // namespace vitrail::serve
