// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace vitrail {

// Remembers the content of the mapped files that this thread has opened for its MappedFileGroup.  From then on,
// MappedFile::check() reads a file whose modification time has changed, and accepts the same content.
// Throws Error for a file that has changed since it was opened.
void remember_contents();

}  // namespace vitrail
