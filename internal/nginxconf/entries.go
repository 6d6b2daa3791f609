package nginxconf

import "slices"

// simpleEntries are the blocks of mapBlocks in which nginx accepts no block. entryWords are those
// whose entries have at most two words. nginx ignores more words in split_clients.
var (
	simpleEntries = []string{"map", "geo", "split_clients", "types", "charset_map"}
	entryWords    = []string{"map", "geo", "charset_map"}
)

// checkMaps checks the entries of blocks such as map, and of the files that they include.
func (c *checker) checkMaps() {
	for _, d := range c.all {
		if d.isBlock && slices.Contains(mapBlocks, d.name) {
			c.checkEntries(d, d.block, d.file)
		}
	}
}

// checkEntries checks entries of a block. file is their file of spec.files, or "" for none.
func (c *checker) checkEntries(block *directive, entries []*directive, file string) {
	for _, entry := range entries {
		if entry.file = file; file == "" {
			entry.key = block.key
		}
		switch {
		case entry.isBlock && slices.Contains(simpleEntries, block.name):
			c.refuse(entry, `unexpected "{" in a "%s" block. Put a regular expression or a value with braces in quotes`,
				block.name)
		case isInclude(entry) && len(entry.args) == 1:
			c.checkInclude(entry, entry.args[0])
			c.eachIncluded(entry, func() { c.unseenEntries = true },
				func(file string, entries []*directive) { c.checkEntries(block, entries, file) })
		case len(entry.args) > 1 && slices.Contains(entryWords, block.name):
			c.checkEntryWords(block, entry)
		}
	}
}

// checkEntryWords refuses an entry with more than two words.
func (c *checker) checkEntryWords(block, entry *directive) {
	remedy := entry.missingSemicolon(func(arguments int) bool { return arguments == 1 })
	if remedy == "" {
		remedy = ". Put a value with spaces in quotes"
	}
	c.refuse(entry, `invalid number of the %s parameters: "%s" has %d values instead of 1`+remedy,
		block.name, entry.name, len(entry.args))
}
