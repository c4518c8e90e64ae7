// SPDX-License-Identifier: Apache-2.0
#include "tests/support/program.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
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

// The variables of this process with those of `changes` instead of others of the same names, as "NAME=VALUE".
std::vector<std::string> environment_with(const std::map<std::string, std::string>& changes) {
  std::vector<std::string> variables;
  for (char** variable = environ; *variable; ++variable) {
    const std::string text = *variable;
    if (!changes.contains(text.substr(0, text.find('=')))) variables.push_back(text);
  }
  for (const auto& [name, value] : changes) variables.push_back(name + "=" + value);
  return variables;
}

std::vector<char*> pointers_of(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

pid_t start_program(const std::filesystem::path& program, std::vector<std::string> arguments, const ProgramFiles& files,
                    const std::map<std::string, std::string>& environment) {
  arguments.insert(arguments.begin(), program.string());
  std::vector<std::string> variables = environment_with(environment);
  const std::vector<char*> argv = pointers_of(arguments), envp = pointers_of(variables);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  constexpr int kWrite = O_WRONLY | O_CREAT | O_TRUNC;
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, files.in.c_str(), O_RDONLY, 0);
  ::posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, files.out.c_str(), kWrite, 0600);
  ::posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, files.err.c_str(), kWrite, 0600);
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  sigset_t defaults;  // these tests may run under nohup
  ::sigemptyset(&defaults);
  for (const int signal : {SIGHUP, SIGINT, SIGTERM}) ::sigaddset(&defaults, signal);
  ::posix_spawnattr_setsigdefault(&attributes, &defaults);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  pid_t child = -1;
  const int error = ::posix_spawn(&child, argv[0], &actions, &attributes, argv.data(), envp.data());
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&actions);
  if (error != 0) throw std::runtime_error(program.string() + " could not be started: " + std::strerror(error));
  return child;
}

ProgramResult run_program(const std::vector<std::string>& arguments, const std::string& input,
                          const std::map<std::string, std::string>& environment, const std::filesystem::path& program) {
  const auto folder = scratch_folder();
  std::ofstream(folder / "in", std::ios::binary) << input;
  const ProgramFiles files{folder / "in", folder / "out", folder / "err"};
  const pid_t child = start_program(program, arguments, files, environment);
  int status = 0;
  if (::waitpid(child, &status, 0) != child) throw std::runtime_error("the program cannot be waited for");
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
