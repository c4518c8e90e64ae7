# SPDX-License-Identifier: Apache-2.0
# The tables of fix_text(), which tools/make_text_tables.py writes.
vitrail_embed_json(text_tables vitrail::text vitrail/text/text_tables_internal.h text/tables html_entities mojibake)
