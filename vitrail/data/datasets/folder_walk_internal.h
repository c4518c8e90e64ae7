// SPDX-License-Identifier: Apache-2.0
#pragma once
// Recursive listing of a folder's images.
#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

namespace vitrail::data {

// A subfolder that cannot be listed.
struct UnreadableFolder {
  std::string path;   // relative, as in the listing
  std::string error;  // with the whole path
};

// Relative paths with '/' as separator; each list is sorted bytewise.
struct FolderListing {
  std::vector<std::string> images;           // files that image::is_image_path accepts
  std::vector<std::string> others;           // all other files; pipes, sockets and devices of any name
  std::vector<std::string> folders;          // at any depth, empty ones too
  std::vector<std::string> outside;          // entries of an archive whose path leaves it by "..", which are left out
  int64_t symbolic_links = 0;                // links in an archive, left out
  int64_t repeated = 0;                      // files of an archive whose path comes again, left out
  uint64_t trailing = 0;                     // bytes after the end of an archive
  std::vector<UnreadableFolder> unreadable;  // also in `folders`; sorted by path
};

// Lists `folder` recursively.  Follows symbolic links, but not to a folder that contains the link.  Hidden
// files and folders and what operating systems add (is_ignored_name) are left out.  Throws Error naming the
// folder if it cannot be read, and once it has more than max_entries files and folders at any depth, hidden ones
// too; its subfolders that cannot be read are in the listing.
FolderListing walk_folder(const std::filesystem::path& folder, int64_t max_entries = INT64_MAX);

// Throws the first error of the subfolders that could not be read.
void require_all_read(const FolderListing& listing);

// Warns of what is left out of an archive: links, repeated paths, paths out of it, bytes after its end.
void report_archive(const FolderListing& listing, const std::string& where);

// Puts a file into the list it belongs to.
void add_file(FolderListing& listing, std::string path);

// Adds a file of an archive and the folders around it, which need not be listed.  Folders end with '/'.
void add_entry(FolderListing& listing, std::set<std::string>& folders, std::string path);

// Sorts the lists.
void sort_listing(FolderListing& listing);

}  // namespace vitrail::data
