// SPDX-License-Identifier: Apache-2.0
#include "apps/vitrail/process_setup.h"

#include <fcntl.h>
#include <unistd.h>

#include <csignal>

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

}  // namespace vitrail::app
