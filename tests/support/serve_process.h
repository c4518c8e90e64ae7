// SPDX-License-Identifier: Apache-2.0
#pragma once
// A running `vitrail serve` with a small model.
#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

namespace vitrail::testing {

class ServeProcess {
 public:
  // Starts `vitrail serve --port 0 ARGUMENTS…` and waits until it serves.  The environment is added to that of this
  // process.  ulimit: the arguments of the shell's ulimit for the server: "-n 64".
  explicit ServeProcess(const std::vector<std::string>& arguments,
                        const std::map<std::string, std::string>& environment = {}, const std::string& ulimit = "");
  ~ServeProcess();  // kills it
  ServeProcess(const ServeProcess&) = delete;
  ServeProcess& operator=(const ServeProcess&) = delete;

  const std::string& address() const { return address_; }  // "http://127.0.0.1:4711"
  uint16_t port() const;
  pid_t pid() const { return pid_; }
  void send_signal(int signal) const;
  int wait();                       // the exit status, as ProgramResult's
  std::string read_output() const;  // what is on standard output so far
  std::string read_errors() const;  // what is on standard error so far

 private:
  pid_t pid_ = -1;
  std::string address_, output_file_, error_file_;
};

}  // namespace vitrail::testing
