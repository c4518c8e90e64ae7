// SPDX-License-Identifier: Apache-2.0
// Part of the HTTP module: reads requests within the limits and writes responses.
#include <utility>  // before Boost 1.74's headers, which use std::exchange

#include "vitrail/serve/http_session_internal.h"

#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <sstream>

#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>

namespace vitrail::serve {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;

constexpr size_t kReadBytes = size_t{1} << 16;         // the size of one read
constexpr double kDiscardSeconds = 2;                  // a client may still send when its request has been refused
constexpr size_t kDiscardedBytes = size_t{256} << 20;  // likewise
constexpr double kMaxDeadlineSeconds = 1e9;            // in nanoseconds it fits 64 bits

std::string lower_case(beast::string_view text) {
  std::string result(text.data(), text.size());
  for (char& c : result) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return result;
}

bool is_http_error(const beast::error_code& error) {
  return error.category() == http::make_error_code(http::error::bad_method).category();
}

// "127.0.0.1:50000"; empty for a Unix socket.
std::string address_of(const Socket& socket) {
  beast::error_code error;
  auto endpoint = socket.remote_endpoint(error);
  std::array<char, NI_MAXHOST> host{};
  std::array<char, NI_MAXSERV> port{};
  const bool is_tcp = !error && (endpoint.data()->sa_family == AF_INET || endpoint.data()->sa_family == AF_INET6);
  if (!is_tcp || ::getnameinfo(endpoint.data(), static_cast<socklen_t>(endpoint.size()), host.data(), host.size(),
                               port.data(), port.size(), NI_NUMERICHOST | NI_NUMERICSERV) != 0)
    return "";
  const std::string name = host.data();
  return (name.find(':') == name.npos ? name : "[" + name + "]") + ":" + port.data();
}

class Exchange : public HttpExchange {
 public:
  Exchange(std::shared_ptr<HttpCore> core, std::weak_ptr<HttpSession> session, uint64_t client, uint64_t number,
           std::shared_ptr<RequestState> state)
      : core_(std::move(core)),
        session_(std::move(session)),
        client_(client),
        number_(number),
        state_(std::move(state)) {}
  ~Exchange() override {
    if (!responded_) respond({.status = 500, .body = R"({"error":"internal error"})"});
  }
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  void respond(HttpResponse response) override {
    if (responded_.exchange(true)) return;
    asio::post(core_->io, [session = session_, number = number_, response = std::move(response)]() mutable {
      if (const auto open = session.lock()) open->respond(number, std::move(response));
    });
  }
  uint64_t client() const override { return client_; }
  bool departed() const override { return state_->departed; }
  bool timed_out() const override { return state_->timed_out; }

 private:
  std::shared_ptr<HttpCore> core_;
  std::weak_ptr<HttpSession> session_;
  uint64_t client_, number_;
  std::shared_ptr<RequestState> state_;
  std::atomic<bool> responded_{false};
};

}  // namespace

void HttpCore::add(HttpSession* session) {
  sessions.insert(session);
  const std::lock_guard lock(mutex);
  connections = sessions.size();
}

void HttpCore::remove(HttpSession* session) {
  sessions.erase(session);
  const std::lock_guard lock(mutex);
  connections = sessions.size();
  closed.notify_all();
}

void HttpCore::close_longest_waiting() {
  HttpSession* longest = nullptr;
  for (HttpSession* session : sessions) {
    if (!session->waiting_since()) continue;
    if (!longest || *session->waiting_since() < *longest->waiting_since()) longest = session;
  }
  if (longest) longest->close();
}

HttpSession::HttpSession(HttpCore& core, Socket socket)
    : core_(core), socket_(std::move(socket)), timer_(core.io), buffer_(core.limits.header_bytes + 2 * kReadBytes) {
  count_chunk_ = [this](std::uint64_t, beast::string_view, ErrorCode& error) {
    if (++chunks_ > core_.limits.chunks) error = http::error::body_limit;
  };
  address_ = address_of(socket_);
  core_.add(this);
  beyond_limit_ = core_.sessions.size() > core_.limits.connections;
}

HttpSession::~HttpSession() { close(); }

void HttpSession::close() {
  if (closed_) return;
  closed_ = true;
  end_request();
  ErrorCode ignored;
  socket_.close(ignored);
  timer_.cancel(ignored);
  core_.remove(this);
}

// Cancels the socket's operations after this time.  A later call replaces it.
void HttpSession::set_deadline(double seconds) {
  const std::chrono::duration<double> duration(std::min(seconds, kMaxDeadlineSeconds));
  timer_.expires_after(std::chrono::duration_cast<std::chrono::nanoseconds>(duration));
  timer_.async_wait([self = shared_from_this()](const ErrorCode& error) {
    if (error || self->closed_ || self->timer_.expiry() > std::chrono::steady_clock::now()) return;
    self->timed_out_ = true;
    if (self->in_flight_ && !self->has_response_ && self->state_) {
      self->state_->timed_out = true;
      self->state_->departed = true;
      self->keep_alive_ = false;
      return self->send(self->core_.handler.error(self->request_, 504, "the time limit of a request passed"));
    }
    ErrorCode ignored;
    self->socket_.cancel(ignored);
  });
}

void HttpSession::read_header() {
  parser_.emplace();
  parser_->header_limit(core_.limits.header_bytes);
  parser_->body_limit(core_.limits.body_bytes);
  parser_->on_chunk_header(count_chunk_);
  request_ = {};
  header_bytes_ = chunks_ = begun_ = 0;
  has_response_ = false;
  state_.reset();
  idle_ = buffer_.size() == 0;
  if (idle_ && core_.draining) return close();
  const bool between_requests = idle_ && number_ > 0;
  set_deadline(between_requests ? core_.limits.idle_seconds : core_.limits.header_seconds);
  if (idle_) return read_more_header();
  parse_header();  // the next request has arrived
}

void HttpSession::read_more_header() {
  socket_.async_read_some(buffer_.prepare(std::min(kReadBytes, buffer_.max_size() - buffer_.size())),
                          [self = shared_from_this()](const ErrorCode& error, size_t size) {
                            if (self->closed_) return;
                            self->buffer_.commit(size);
                            self->on_header_bytes(error);
                          });
}

void HttpSession::on_header_bytes(ErrorCode error) {
  if (error) return on_failed_read(error);
  if (std::exchange(idle_, false)) set_deadline(core_.limits.header_seconds);
  parse_header();
}

// Some clients send them after a body (RFC 9112, section 2.2).
void HttpSession::skip_empty_lines() {
  const auto text = [this] {
    return std::string_view(static_cast<const char*>(buffer_.data().data()), buffer_.size());
  };
  while (header_bytes_ == 0 && text().starts_with("\r\n")) buffer_.consume(2);
}

void HttpSession::parse_header() {
  skip_empty_lines();
  const auto bytes = buffer_.data();
  const std::string_view text(static_cast<const char*>(bytes.data()), bytes.size());
  if (text.empty() || text == "\r") return read_more_header();
  const std::string_view head = text.substr(0, text.find("\r\n\r\n"));
  // Header lines that continue the line before (RFC 9112, section 5.2), which proxies read in different ways.
  if (head.find("\r\n ") != head.npos || head.find("\r\n\t") != head.npos)
    return refuse(400, "malformed HTTP: a header of several lines");
  ErrorCode error;
  const size_t consumed = parser_->put(bytes, error);
  buffer_.consume(consumed);
  header_bytes_ += consumed;
  if (error && error != http::error::need_more) return on_failed_read(error);
  // Beast's own limit leaves out the first line.
  const size_t size = header_bytes_ + (parser_->is_header_done() ? 0 : buffer_.size());
  if (size > core_.limits.header_bytes) return on_failed_read(http::error::header_limit);
  if (parser_->is_header_done()) return on_header();
  read_more_header();
}

void HttpSession::on_failed_read(ErrorCode error) {
  if (timed_out_) {
    if (idle_) return close();
    return refuse(408, "the request did not arrive within the time limit");
  }
  if (error == http::error::header_limit || error == http::error::buffer_overflow) {
    return refuse(431, "the header exceeds " + std::to_string(core_.limits.header_bytes) + " bytes");
  }
  if (error == http::error::body_limit && chunks_ > core_.limits.chunks)
    return refuse(413, "the body has more than " + std::to_string(core_.limits.chunks) + " chunks");
  if (error == http::error::body_limit)
    return refuse(413, "the body exceeds " + std::to_string(core_.limits.body_bytes) + " bytes");
  if (error == http::error::end_of_stream || error == http::error::partial_message || !is_http_error(error))
    return close();
  refuse(400, "malformed HTTP: " + error.message());
}

std::string HttpSession::header_fault() const {
  size_t lengths = 0, codings = 0, hosts = 0;
  for (const auto& field : parser_->get()) {
    const std::string value = lower_case(field.value());
    if (field.name() == http::field::host) ++hosts;
    if (field.name() == http::field::content_length) {
      ++lengths;
      if (value.empty() || value.find_first_not_of("0123456789") != value.npos) return "Content-Length is no number";
    }
    if (field.name() == http::field::transfer_encoding) {
      ++codings;
      if (value != "chunked") return "Transfer-Encoding is not chunked";
    }
  }
  if (lengths + codings > 1) return "several headers give the length of the body";
  const bool may_lack_host = parser_->get().version() == 10;
  if (hosts > 1 || (hosts == 0 && !may_lack_host)) return "expected one header Host, got " + std::to_string(hosts);
  return "";
}

// Takes over what is known of the request before its body.
void HttpSession::copy_head() {
  const auto& head = parser_->get();
  request_.method = std::string(head.method_string());
  request_.target = std::string(head.target());
  request_.client = address_;
  for (const auto& field : head)
    request_.headers.emplace_back(lower_case(field.name_string()), std::string(field.value()));
}

void HttpSession::on_header() {
  copy_head();
  keep_alive_ = parser_->keep_alive();
  if (const std::string fault = header_fault(); !fault.empty()) return refuse(400, "malformed HTTP: " + fault);
  if (request_.headers.size() > core_.limits.headers)
    return refuse(431, "more than " + std::to_string(core_.limits.headers) + " headers");
  in_flight_ = true;
  ++core_.requests;
  const bool full = beyond_limit_ && core_.sessions.size() > core_.limits.connections;
  const bool overloaded = core_.requests > core_.limits.requests || core_.buffered_bytes > core_.limits.buffered_bytes;
  const HttpLoad load = full ? HttpLoad::kFull : overloaded ? HttpLoad::kOverloaded : HttpLoad::kUsual;
  if (std::optional<HttpResponse> response = core_.handler.refuse(request_, load)) {
    keep_alive_ = keep_alive_ && parser_->is_done();
    return send(std::move(*response));
  }
  if (parser_->is_done()) return dispatch();
  continue_and_read_body();
}

void HttpSession::continue_and_read_body() {
  body_begin_ = std::chrono::steady_clock::now();
  parser_->eager(true);  // one read takes all chunks that have arrived
  // A body that grows is copied several times.  What a client announces but may never send is limited.
  constexpr uint64_t kReservedBytes = 1 << 20;
  if (const auto length = parser_->content_length()) request_.body.reserve(std::min<uint64_t>(*length, kReservedBytes));
  if (lower_case(parser_->get()[http::field::expect]) != "100-continue") return read_body();
  static constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
  set_deadline(core_.limits.header_seconds);
  asio::async_write(socket_, asio::buffer(kContinue.data(), kContinue.size()),
                    [self = shared_from_this()](const ErrorCode& error, size_t) {
                      if (self->closed_) return;
                      if (error) return self->close();
                      self->read_body();
                    });
}

void HttpSession::read_body() {
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - body_begin_;
  set_deadline(core_.limits.body_grace_seconds +
               static_cast<double>(request_.body.size()) / core_.limits.body_bytes_per_second - elapsed.count());
  parser_->get().body().data = block_.data();
  parser_->get().body().size = block_.size();
  http::async_read_some(socket_, buffer_, *parser_, [self = shared_from_this()](const ErrorCode& error, size_t) {
    if (!self->closed_) self->on_body_bytes(error);
  });
}

void HttpSession::on_body_bytes(ErrorCode error) {
  if (error && error != http::error::need_buffer) return on_failed_read(error);
  const size_t count = block_.size() - parser_->get().body().size;
  core_.buffered_bytes += count;
  buffered_ += count;
  if (core_.buffered_bytes > core_.limits.buffered_bytes) return refuse(429, "the server is overloaded: try again");
  request_.body.append(block_.data(), count);
  if (parser_->is_done()) return dispatch();
  read_body();
}

void HttpSession::dispatch() {
  state_ = std::make_shared<RequestState>();
  auto exchange = std::make_shared<Exchange>(core_.shared_from_this(), weak_from_this(), client_, number_, state_);
  set_deadline(core_.limits.request_seconds);
  watch_for_departure();
  HttpRequest head{.method = request_.method,
                   .target = request_.target,
                   .headers = request_.headers,
                   .body = {},
                   .client = address_};
  core_.handler.handle(std::exchange(request_, std::move(head)), std::move(exchange));  // the head: for a time-out
}

// A client that closes its connection is not computed for.
void HttpSession::watch_for_departure() {
  socket_.async_wait(Socket::wait_read, [self = shared_from_this(), number = number_](const ErrorCode& error) {
    if (error || self->closed_ || self->number_ != number || self->buffer_.size() > 0) return;
    char byte = 0;
    const ssize_t size = ::recv(self->socket_.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    if (size < 0 && errno != EAGAIN && errno != EINTR) return self->close();
    if (size == 0) self->begin_response();
  });
}

// A client that sends no more may have closed its connection, or its sending half alone.  Which one shows when it is
// written to, and all responses begin alike.
void HttpSession::begin_response() {
  if (has_response_) return;
  const std::string_view begin = parser_->get().version() == 10 ? "HTTP/1.0 " : "HTTP/1.1 ";
  const ssize_t size = ::send(socket_.native_handle(), begin.data(), begin.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (size < 0 && errno != EAGAIN) return close();
  begun_ = static_cast<size_t>(std::max<ssize_t>(size, 0));
  socket_.async_wait(Socket::wait_error, [self = shared_from_this(), number = number_](const ErrorCode& error) {
    if (!error && !self->closed_ && self->number_ == number) self->close();
  });
}

void HttpSession::respond(uint64_t request, HttpResponse response) {
  if (!closed_ && request == number_) send(std::move(response));
}

void HttpSession::refuse(int status, const std::string& message) {
  keep_alive_ = false;
  timed_out_ = false;
  send(core_.handler.error(request_, status, message));
}

void HttpSession::send(HttpResponse response) {
  if (has_response_) return;
  has_response_ = true;
  idle_ = timed_out_ = false;
  const bool head_only = request_.method == "HEAD" || (parser_ && parser_->get().method() == http::verb::head);
  http::response<http::empty_body> head;
  head.result(static_cast<unsigned>(response.status));
  // To a client of HTTP/1.0, a connection that stays open must be announced.
  if (parser_ && parser_->get().version() == 10) head.version(10);
  head.set(http::field::content_type, response.content_type);
  for (const auto& [name, value] : response.headers) head.insert(name, value);
  head.content_length(response.body.size());
  head.keep_alive(keep_alive_ && !core_.draining);
  keep_alive_ = head.keep_alive();
  set_deadline(core_.limits.request_seconds +
               static_cast<double>(response.body.size()) / core_.limits.body_bytes_per_second);
  std::ostringstream text;
  text << head.base();
  const auto parts = std::make_shared<std::array<std::string, 2>>();
  *parts = {text.str().substr(begun_), head_only ? "" : std::move(response.body)};
  response_ = parts;
  const std::array<asio::const_buffer, 2> buffers{asio::buffer((*parts)[0]), asio::buffer((*parts)[1])};
  asio::async_write(socket_, buffers, [self = shared_from_this()](const ErrorCode& error, size_t) {
    if (!self->closed_) self->on_sent(error);
  });
}

void HttpSession::on_sent(ErrorCode error) {
  response_.reset();
  end_request();
  if (error) return close();
  if (keep_alive_) return read_header();
  ErrorCode ignored;
  socket_.shutdown(Socket::shutdown_send, ignored);
  set_deadline(kDiscardSeconds);
  discard_input();
}

// Closing a socket with input that was not read resets the connection, and the client may lose the response.
void HttpSession::discard_input() {
  socket_.async_read_some(asio::buffer(block_), [self = shared_from_this()](const ErrorCode& error, size_t size) {
    if (self->closed_) return;
    self->discarded_ += size;
    if (error || self->discarded_ > kDiscardedBytes) return self->close();
    self->discard_input();
  });
}

void HttpSession::end_request() {
  if (state_) state_->departed = true;
  ++number_;
  waiting_since_ = std::chrono::steady_clock::now();
  core_.buffered_bytes -= std::exchange(buffered_, 0);
  if (std::exchange(in_flight_, false)) --core_.requests;
}

}  // namespace vitrail::serve
