// The chosen colours, set before the page is drawn: a script of its own, as modules run later.

document.documentElement.dataset.theme = localStorage.getItem("playground.theme") ?? "";
