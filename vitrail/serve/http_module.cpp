// SPDX-License-Identifier: Apache-2.0
// The HTTP module: built as a shared object of its own (vitrail_serve.so), which http_loader.cpp loads.
#include <utility>  // before Boost 1.74's headers, which use std::exchange

#include <sys/stat.h>
#include <unistd.h>

#include <thread>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/post.hpp>

#include "vitrail/serve/http_session_internal.h"

namespace vitrail::serve {
namespace {

namespace asio = boost::asio;
using Tcp = asio::ip::tcp;
using Local = asio::local::stream_protocol;
using ErrorCode = boost::system::error_code;

constexpr std::chrono::milliseconds kAcceptPause{50};  // after a failure, such as too many open files
constexpr size_t kHealthConnections = 16;              // beyond the limit of connections

// Binds a socket of this path, and replaces one that no server listens on.
void bind_unix(Local::acceptor& acceptor, const std::string& path) {
  ErrorCode error;
  acceptor.bind(Local::endpoint(path), error);
  if (!error) return;
  Local::socket probe(acceptor.get_executor());
  ErrorCode refused;
  probe.connect(Local::endpoint(path), refused);
  struct stat status {};
  const bool is_socket = ::lstat(path.c_str(), &status) == 0 && S_ISSOCK(status.st_mode);
  if (refused != asio::error::connection_refused || !is_socket) throw boost::system::system_error(error);
  ::unlink(path.c_str());
  acceptor.bind(Local::endpoint(path));
}

// Accepts connections of one protocol as sessions.
template <class Protocol>
class Acceptor {
 public:
  Acceptor(const std::shared_ptr<HttpCore>& core, const typename Protocol::endpoint& endpoint)
      : core_(core), acceptor_(core->io), pause_(core->io) {
    acceptor_.open(endpoint.protocol());
    if constexpr (std::is_same_v<Protocol, Tcp>) {
      acceptor_.set_option(asio::socket_base::reuse_address(true));
      acceptor_.bind(endpoint);
    } else {
      path_ = endpoint.path();
      bind_unix(acceptor_, path_);
    }
    acceptor_.listen();
    accept();
  }

  void close() {
    ErrorCode ignored;
    if (acceptor_.is_open() && !path_.empty()) ::unlink(path_.c_str());
    acceptor_.close(ignored);
    pause_.cancel(ignored);
  }

  typename Protocol::endpoint endpoint() const { return acceptor_.local_endpoint(); }

 private:
  void accept() {
    acceptor_.async_accept([this](const ErrorCode& error, typename Protocol::socket socket) {
      if (!acceptor_.is_open()) return;
      if (!error) {
        begin(std::move(socket));
        return accept();
      }
      pause_.expires_after(kAcceptPause);
      pause_.async_wait([this](const ErrorCode& cancelled) {
        if (!cancelled && acceptor_.is_open()) accept();
      });
    });
  }

  void begin(typename Protocol::socket socket) {
    ErrorCode ignored;
    if constexpr (std::is_same_v<Protocol, Tcp>) socket.set_option(Tcp::no_delay(true), ignored);
    if (core_->sessions.size() >= core_->limits.connections) core_->close_longest_waiting();
    if (core_->sessions.size() < core_->limits.connections + kHealthConnections) {
      std::make_shared<HttpSession>(*core_, Socket(std::move(socket)))->start();
      return;
    }
    socket.non_blocking(true, ignored);
    static constexpr std::string_view kFull =
        "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nRetry-After: 1\r\nConnection: close\r\n"
        "Content-Length: 32\r\n\r\n{\"error\":\"too many connections\"}";
    socket.write_some(asio::buffer(kFull.data(), kFull.size()), ignored);
    socket.shutdown(asio::socket_base::shutdown_send, ignored);
  }

  std::shared_ptr<HttpCore> core_;
  typename Protocol::acceptor acceptor_;
  asio::steady_timer pause_;
  std::string path_;
};

class Transport : public HttpTransport {
 public:
  Transport(const HttpEndpoint& endpoint, const Limits& limits, HttpHandler& handler)
      : core_(std::make_shared<HttpCore>(limits, handler)), work_(asio::make_work_guard(core_->io)) {
    if (endpoint.unix_path.empty()) {
      const Tcp::endpoint address(asio::ip::make_address(endpoint.host), endpoint.port);
      tcp_ = std::make_unique<Acceptor<Tcp>>(core_, address);
      port_ = tcp_->endpoint().port();
    } else {
      local_ = std::make_unique<Acceptor<Local>>(core_, Local::endpoint(endpoint.unix_path));
    }
    thread_ = std::thread([this] { core_->io.run(); });
  }

  ~Transport() override {
    asio::post(core_->io, [this] {
      close_acceptors();
      while (!core_->sessions.empty()) (*core_->sessions.begin())->close();
    });
    work_.reset();
    thread_.join();
  }

  uint16_t port() const override { return port_; }

  size_t connections() const override {
    const std::lock_guard lock(core_->mutex);
    return core_->connections;
  }

  bool drain() override {
    asio::post(core_->io, [this] {
      core_->draining = true;
      close_acceptors();
      const std::set<HttpSession*> sessions = core_->sessions;
      for (HttpSession* session : sessions) session->close_if_idle();
      const std::lock_guard lock(core_->mutex);
      drain_begun_ = true;
      core_->closed.notify_all();
    });
    std::unique_lock lock(core_->mutex);
    return core_->closed.wait_for(lock, std::chrono::duration<double>(core_->limits.exit_seconds),
                                  [this] { return drain_begun_ && core_->connections == 0; });
  }

 private:
  void close_acceptors() {
    if (tcp_) tcp_->close();
    if (local_) local_->close();
  }

  std::shared_ptr<HttpCore> core_;
  asio::executor_work_guard<asio::io_context::executor_type> work_;
  std::unique_ptr<Acceptor<Tcp>> tcp_;
  std::unique_ptr<Acceptor<Local>> local_;
  uint16_t port_ = 0;
  bool drain_begun_ = false;  // under the mutex of the core
  std::thread thread_;
};

std::unique_ptr<HttpTransport> listen_on(const HttpEndpoint& endpoint, const Limits& limits, HttpHandler& handler,
                                         std::string& error) {
  try {
    return std::make_unique<Transport>(endpoint, limits, handler);
  } catch (const boost::system::system_error& failure) {
    const std::string where =
        endpoint.unix_path.empty() ? endpoint.host + " port " + std::to_string(endpoint.port) : endpoint.unix_path;
    error = "serve: cannot listen on " + where + ": " + failure.code().message();
  } catch (const std::exception& failure) {
    error = std::string("serve: ") + failure.what();
  }
  return nullptr;
}

}  // namespace
}  // namespace vitrail::serve

extern "C" __attribute__((visibility("default"))) const vitrail::serve::HttpModule* vitrail_serve_module() {
  using namespace vitrail::serve;
  static const HttpModule module{kHttpModuleVersion, listen_on};
  return &module;
}
