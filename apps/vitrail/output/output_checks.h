// SPDX-License-Identifier: Apache-2.0
#pragma once
// Checks of the files that a command is told to write, before it computes anything.
#include <CLI/CLI.hpp>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace vitrail::app {

// A file by its device and inode: two paths may name one file.
class FileSet {
 public:
  explicit FileSet(const std::vector<std::string>& paths = {});  // regular files; "-" is standard input
  void add(const std::string& path);
  bool contains(const std::string& path) const;

 private:
  std::set<std::pair<uint64_t, uint64_t>> files_;
};

// What a command writes.  An existing file is its own if it begins likewise, and so is an empty one: an interrupted run
// leaves one where it writes in place.
enum class Kind {
  array,          // .npy
  archive,        // .npz
  feature_table,  // CSV of embed
  predictions,    // CSV of eval
  mask_table,     // CSV of segment
  png,            // an image
  page,           // HTML
  json,
  weights,  // safetensors
  onnx,
  index,
  record,         // the record of embeddings
  shard_records,  // JSON lines of a shard's images
  paths,          // a list beside an array or an index
  task_file,      // a kind of file of a task
};

struct OutputFile {
  std::string option, path;  // without a path the option was not given
  Kind kind;
  std::vector<std::string> owners = {};  // one of these files makes a list beside it the command's own
  std::string start = {};                // the first bytes of a task's file; empty: they may be any
};

// --force of a command that writes files.
void add_force_to(CLI::App& command, bool& force);

// The rule for all outputs.  Throws CLI::ValidationError (a usage error) naming the option
// - for "-", because standard output has other results;
// - for an input, for another output, and for a file in a folder of inputs that the command did not write;
// - unless `force`, for a file anywhere that the command did not write.
// Outputs are compared by the files that they name, however these are written and before they exist.
void check_outputs(const std::vector<OutputFile>& outputs, const std::vector<std::string>& inputs, bool force);

// The same for an output that is known when its image is.
void check_output(const OutputFile& output, const FileSet& inputs, bool force);

// Throws CLI::ValidationError if the folder of an option is in a folder of inputs: it would be read with them next
// time.
void check_output_folder(const std::string& folder, const std::vector<std::string>& inputs,
                         const std::string& option = "-o");

// Whether an output at this path would replace a regular file.
bool replaces_file(const std::string& output);

}  // namespace vitrail::app
