// SPDX-License-Identifier: Apache-2.0
#pragma once
// Temporary files that become other files.
#include <cstddef>
#include <filesystem>
#include <string_view>
#include <system_error>

namespace vitrail {

// A new empty file for reading and writing in `folder`, which vanishes unless link_to() gives it a name.  Where the
// system supports it, the file has no name until then (O_TMPFILE), so that nothing is left behind however the process
// ends.  Elsewhere, and for the moment in which it replaces another file, its name is random and of fixed length
// (.vitrail-0123456789abcdef.tmp); the destructor and remove_temporary_files() delete it.  It is locked: files without
// a lock are of the user's processes that were killed, and who makes or replaces a file in their folder deletes them.
class TemporaryFile {
 public:
  enum class Kind { unnamed_if_possible, named };

  // Throws std::system_error with the reason: no permission, no such folder, too many open files.
  explicit TemporaryFile(const std::filesystem::path& folder, Kind kind = Kind::unnamed_if_possible);
  ~TemporaryFile();
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  int descriptor() const { return descriptor_; }

  // Makes `target`, in the same folder, this file.  Replaces an existing file atomically.
  std::error_code link_to(const std::filesystem::path& target);

 private:
  void open_named();

  std::filesystem::path folder_;
  std::filesystem::path name_;  // empty: the file has no name
  int descriptor_ = -1;
  int slot_ = -1;  // in the list that remove_temporary_files() reads
};

// Whether a file name is that of a named temporary file.
bool is_temporary_name(std::string_view name);

// Deletes the named temporary files of this process.  May be called in a signal handler.
void remove_temporary_files() noexcept;

}  // namespace vitrail
