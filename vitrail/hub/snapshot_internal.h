// SPDX-License-Identifier: Apache-2.0
#pragma once
// Blobs, and the files of snapshots that link to them.
#include <string>

#include "vitrail/hub/file_list_internal.h"

namespace vitrail::hub {

constexpr const char* kPullLock = "vitrail-pull";  // held during a pull

// Whether the content is there, in the size that the hub lists.  Deletes a blob of another size.
bool has_blob(const Layout& layout, const HubFile& file);
bool is_in_snapshot(const Layout& layout, const std::string& commit, const std::string& path, const HubFile& file);

// Makes snapshots/COMMIT/PATH a link to the blob.  Without symlinks, or where the file system has none, the blob is
// moved there.
void add_to_snapshot(const Layout& layout, const std::string& commit, const std::string& path, const HubFile& file,
                     bool symlinks);

}  // namespace vitrail::hub
