// Every name begins with "attnmargin.", so a search for "margin" would find them all: look behind that.
if (typeof Search !== "undefined") {
  const search = Search.performObjectSearch;
  const own = (name) => name.replace(/^attnmargin\./, "").toLowerCase();
  Search.performObjectSearch = (word, words) =>
    search(word, words).filter((result) => own(result[1]).includes(word));
}
