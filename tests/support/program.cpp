// SPDX-License-Identifier: Apache-2.0
#include "tests/support/program.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace vitrail::testing {
namespace {

std::string read_all(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

[[noreturn]] void exec_program(const std::string& name, const std::vector<std::string>& arguments,
                               const std::filesystem::path& folder,
                               const std::map<std::string, std::string>& environment) {
  const bool redirected = std::freopen((folder / "in").c_str(), "r", stdin) &&
                          std::freopen((folder / "out").c_str(), "w", stdout) &&
                          std::freopen((folder / "err").c_str(), "w", stderr);
  for (const auto& [name, value] : environment) ::setenv(name.c_str(), value.c_str(), 1);
  std::vector<char*> argv{const_cast<char*>(name.c_str())};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  if (redirected) ::execv(name.c_str(), argv.data());
  ::_exit(127);
}

}  // namespace

ProgramResult run_program(const std::vector<std::string>& arguments, const std::string& input,
                          const std::map<std::string, std::string>& environment, const std::filesystem::path& program) {
  const auto folder = scratch_folder();
  std::ofstream(folder / "in", std::ios::binary) << input;
  const pid_t child = ::fork();
  if (child == 0) exec_program(program.string(), arguments, folder, environment);
  int status = 0;
  if (child < 0 || ::waitpid(child, &status, 0) != child) throw std::runtime_error("vitrail could not be started");
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return {code, read_all(folder / "out"), read_all(folder / "err")};
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

}  // namespace vitrail::testing
