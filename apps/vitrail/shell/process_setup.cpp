// SPDX-License-Identifier: Apache-2.0
#include "apps/vitrail/shell/process_setup.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <string>

#include "vitrail/base/error.h"
#include "vitrail/base/signal_block_internal.h"
#include "vitrail/base/temporary_file_internal.h"

namespace vitrail::app {
namespace {

// open() returns the lowest free descriptor, which is `descriptor` if the lower ones are open.
void open_if_closed(int descriptor, int mode) {
  if (::fcntl(descriptor, F_GETFD) >= 0) return;
  static_cast<void>(::open("/dev/null", mode));
}

extern "C" void on_ending_signal(int signal) {
  remove_temporary_files();
  ::raise(signal);  // with the default action, which SA_RESETHAND restored
}

constexpr size_t kStackBytes = size_t{8} << 20;     // what systems give a process by default
constexpr rlim_t kMinStackBytes = rlim_t{1} << 20;  // several times what was ever seen in use

bool stack_is_small() {
  rlimit limit{};
  return ::getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && limit.rlim_cur < kMinStackBytes;
}

struct StackedCall {
  const std::function<int()>& body;
  sigset_t signals;  // that are blocked in `body`
  int status = 0;
};

extern "C" void* run_stacked_call(void* argument) {
  StackedCall& call = *static_cast<StackedCall*>(argument);
  ::pthread_sigmask(SIG_SETMASK, &call.signals, nullptr);
  call.status = call.body();
  return nullptr;
}

}  // namespace

void open_closed_standard_streams() {
  open_if_closed(STDIN_FILENO, O_WRONLY);   // reading fails
  open_if_closed(STDOUT_FILENO, O_RDONLY);  // writing fails
  open_if_closed(STDERR_FILENO, O_WRONLY);  // messages are dropped
}

void remove_temporary_files_on_signals() {
  struct sigaction action {};
  action.sa_handler = on_ending_signal;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  for (const int signal : {SIGHUP, SIGINT, SIGQUIT, SIGTERM}) {
    struct sigaction before {};
    ::sigaction(signal, nullptr, &before);
    if (before.sa_handler != SIG_IGN) ::sigaction(signal, &action, nullptr);  // nohup ignores SIGHUP
  }
}

void ignore_file_size_signal() {
#ifdef SIGXFSZ
  std::signal(SIGXFSZ, SIG_IGN);
#endif
}

void limit_memory(int64_t bytes) {
  rlimit limit{};
  bool limited = ::getrlimit(RLIMIT_DATA, &limit) == 0;
  limit.rlim_cur = std::min(static_cast<rlim_t>(bytes), limit.rlim_max);
  limited = limited && ::setrlimit(RLIMIT_DATA, &limit) == 0;
  if (!limited) throw Error(std::string("--max-memory: the limit cannot be set: ") + std::strerror(errno));
}

int run_with_enough_stack(const std::function<int()>& body) {
  if (!stack_is_small()) return body();
  pthread_attr_t attributes;
  if (::pthread_attr_init(&attributes) != 0) return body();
  ::pthread_attr_setstacksize(&attributes, kStackBytes);
#ifdef __GLIBC__
  ::pthread_setattr_default_np(&attributes);  // else new threads have stacks of the limit's size
#endif
  StackedCall call{.body = body, .signals = {}};
  ::pthread_sigmask(SIG_SETMASK, nullptr, &call.signals);
  const SignalBlock waiting;  // signals are for the thread that runs the body, which may block and await them
  pthread_t thread;
  const bool started = ::pthread_create(&thread, &attributes, run_stacked_call, &call) == 0;
  ::pthread_attr_destroy(&attributes);
  if (!started) {
    ::pthread_sigmask(SIG_SETMASK, &call.signals, nullptr);
    return body();
  }
  ::pthread_join(thread, nullptr);
  return call.status;
}

}  // namespace vitrail::app
