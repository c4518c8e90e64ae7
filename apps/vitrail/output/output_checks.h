// SPDX-License-Identifier: Apache-2.0
#pragma once
// Checks of the files that a command is told to write, before it reads the first image.
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace vitrail::app {

// A file by its device and inode: two paths may name one file.
class FileSet {
 public:
  explicit FileSet(const std::vector<std::string>& paths);  // those that are regular files; "-" is standard input
  void add(const std::string& path);
  bool contains(const std::string& path) const;

 private:
  std::set<std::pair<uint64_t, uint64_t>> files_;
};

struct OutputFile {
  std::string option, path;  // without a path the option was not given
};

// Throws CLI::ValidationError (a usage error) for an output that would overwrite one of the inputs or another output,
// and for "-", because standard output has other results.  Outputs are compared by the files that they name, however
// these are written and before they exist.  What only reading shows, such as an image in a folder or a model's
// configuration, fails when it is read, and the output is not replaced.
void check_outputs(const std::vector<OutputFile>& outputs, const std::vector<std::string>& inputs);

// Whether an output at this path would replace a regular file.
bool replaces_file(const std::string& output);

}  // namespace vitrail::app
