// SPDX-License-Identifier: Apache-2.0
#pragma once
// Read-only memory-mapped files.
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

namespace vitrail {

// A file mapped read-only.  Its pages are the operating system's page cache, so opening a model file copies nothing.
// On a file system that cannot map files, such as some network shares, it is a copy in memory.
// The constructor throws Error with the path if the file is missing, unreadable or not a regular file.  An empty file
// maps to an empty span.  file_guard.h says what happens if the file changes.
class MappedFile {
 public:
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  const std::filesystem::path& path() const { return path_; }

  // Maps the pages of [data, data + size), a part of bytes(), in one system call where the kernel supports it.  Reading
  // them one after another instead costs a page fault per 64 KiB.
  void prefetch(const std::byte* data, size_t size) const;

  // Releases the physical memory of [data, data + size), a part of bytes().  The contents stay readable: the next
  // access reads them from the file again.
  void release(const std::byte* data, size_t size) const;

  // Throws Error if the file has changed since it was opened.
  void check() const;

  uint64_t group() const { return group_; }  // the MappedFileGroup that it belongs to; 0: none

 private:
  std::filesystem::path path_;
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
  bool is_copy_ = false;
  int file_ = -1;         // stays open, for check()
  int64_t modified_ = 0;  // modification time, in nanoseconds
  int slot_ = -1;         // position of the mapping in the list that the signal handler reads
  uint64_t group_ = 0;
};

// The mapped files of a part of the program, such as a model.
class MappedFileGroup {
 public:
  MappedFileGroup();

  // While it lives, the files that its thread opens belong to the group.  Of several the last one counts.
  class Scope {
   public:
    explicit Scope(const MappedFileGroup& group);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    uint64_t before_;
  };

  // As check_mapped_files(), for those files of the group that are still open.
  void check() const;

 private:
  uint64_t number_;
};

}  // namespace vitrail
