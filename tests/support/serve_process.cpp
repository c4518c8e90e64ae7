// SPDX-License-Identifier: Apache-2.0
#include "tests/support/serve_process.h"

#include <signal.h>
#include <sys/wait.h>

#include <chrono>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <thread>

#include "tests/support/paths.h"
#include "tests/support/program.h"

namespace vitrail::testing {
namespace {

std::string content_of(const std::string& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

ServeProcess::ServeProcess(const std::vector<std::string>& arguments,
                           const std::map<std::string, std::string>& environment, const std::string& ulimit) {
  const auto folder = scratch_folder();
  error_file_ = (folder / "err").string();
  output_file_ = (folder / "out").string();
  std::vector<std::string> all{"serve", "--port", "0"};
  all.insert(all.end(), arguments.begin(), arguments.end());
  std::filesystem::path started = program();
  if (!ulimit.empty()) {
    all.insert(all.begin(), {"-c", "ulimit " + ulimit + " && exec \"$0\" \"$@\"", started.string()});
    started = "/bin/sh";
  }
  pid_ = start_program(started, all, {"/dev/null", output_file_, error_file_}, environment);
  const std::string mark = "serving on ";
  for (int i = 0; i < 6000; ++i) {  // a minute
    const std::string text = read_errors();
    const size_t at = text.find(mark), end = text.find('\n', at == text.npos ? 0 : at);
    if (at != text.npos && end != text.npos) {
      address_ = text.substr(at + mark.size(), end - at - mark.size());
      return;
    }
    int status = 0;
    if (::waitpid(pid_, &status, WNOHANG) == pid_) {
      pid_ = -1;
      throw std::runtime_error("vitrail serve ended: " + read_errors());
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  throw std::runtime_error("vitrail serve does not serve: " + read_errors());
}

ServeProcess::~ServeProcess() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

uint16_t ServeProcess::port() const {
  return static_cast<uint16_t>(std::stoi(address_.substr(address_.rfind(':') + 1)));
}

void ServeProcess::send_signal(int signal) const { ::kill(pid_, signal); }

int ServeProcess::wait() {
  int status = 0;
  ::waitpid(pid_, &status, 0);
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::string ServeProcess::read_output() const { return content_of(output_file_); }

std::string ServeProcess::read_errors() const { return content_of(error_file_); }

}  // namespace vitrail::testing
