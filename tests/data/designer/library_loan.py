class LibraryLoanEnv(ToolEnv):
    """Return and reserve books at a library."""

    TITLES = ["Emma", "Walden", "Dracula", "Ulysses", "Middlemarch", "Persuasion", "Kim", "Nostromo"]
    NAMES = ["Ada", "Bela", "Chen", "Dana", "Emil", "Fay"]

    def reset(self, seed=None):
        super().reset(seed)
        titles = self.rng.sample(self.TITLES, 5)
        names = self.rng.sample(self.NAMES, 3)
        books = {f"B{self.rng.randrange(1000, 9999)}": {"title": title, "holder": None, "queue": []} for title in titles}
        ids = list(books)
        for book, name in zip(self.rng.sample(ids, 3), names):
            books[book]["holder"] = name
        self._state = {"books": books, "log": []}
        self._user = names[0]
        self._mine = next(book for book in ids if books[book]["holder"] == names[0])
        self._theirs = next(book for book in ids if books[book]["holder"] == names[1])
        self._free = next(book for book in ids if books[book]["holder"] is None)
        mine, theirs, free = self._mine, self._theirs, self._free
        user, other = names[0], names[1]
        self._tools = {
            "find": {"description": "Ids of the books with this title", "parameters": {"type": "object",
                "properties": {"title": {"type": "string"}}, "required": ["title"]}},
            "loans": {"description": "Ids of the books that a person holds", "parameters": {"type": "object",
                "properties": {"person": {"type": "string"}}, "required": ["person"]}},
            "give_back": {"description": "Take a book back", "parameters": {"type": "object",
                "properties": {"book": {"type": "string"}}, "required": ["book"]}},
            "lend": {"description": "Lend a free book", "parameters": {"type": "object",
                "properties": {"book": {"type": "string"}, "person": {"type": "string"}}, "required": ["book", "person"]}},
            "reserve": {"description": "Queue for a book that is out", "parameters": {"type": "object",
                "properties": {"book": {"type": "string"}, "person": {"type": "string"}}, "required": ["book", "person"]}},
        }
        self._user_messages = [
            f"I am {user}. Please take back the book that I have.",
            f"Now lend me {books[free]['title']}.",
            f"And put me in the queue for whatever {other} holds.",
        ]
        self._message_criteria = [
            lambda state: ("back", mine) in state["log"] and len([e for e in state["log"] if e[0] == "back"]) == 1,
            lambda state: state["books"][free]["holder"] == user,
            lambda state: state["books"][theirs]["queue"] == [user] and len(state["log"]) == 3,
        ]
        return self._user_messages[0], {}

    def _book(self, book):
        if book not in self._state["books"]:
            raise ValueError(f"no book {book!r}")
        return self._state["books"][book]

    def tool_find(self, title):
        return [book for book, entry in self._state["books"].items() if entry["title"] == title]

    def tool_loans(self, person):
        return [book for book, entry in self._state["books"].items() if entry["holder"] == person]

    def tool_give_back(self, book):
        entry = self._book(book)
        if entry["holder"] is None:
            raise ValueError("that book is not lent")
        entry["holder"] = None
        self._state["log"].append(("back", book))
        return "taken back"

    def tool_lend(self, book, person):
        entry = self._book(book)
        if entry["holder"] is not None:
            raise ValueError("that book is out")
        entry["holder"] = person
        self._state["log"].append(("lend", book, person))
        return "lent"

    def tool_reserve(self, book, person):
        entry = self._book(book)
        if entry["holder"] is None:
            raise ValueError("that book is not out; lend it")
        entry["queue"].append(person)
        self._state["log"].append(("reserve", book, person))
        return "queued"

    def solution(self):
        def call(name, **arguments):
            return "<tool_call>" + json.dumps({"name": name, "arguments": arguments}) + "</tool_call>"
        return [
            call("give_back", book=self._mine),
            call("lend", book=self._free, person=self._user),
            call("reserve", book=self._theirs, person=self._user),
            "<answer>done</answer>",
        ]
