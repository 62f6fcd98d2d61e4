// Every page with the list of chats.

import "../js/shell.js";
import "../js/sidebar_fold.js";
import "../js/chat_list.js";
import "../js/chat_news.js";
import "../js/search_palette.js";
import "../js/installation.js";
